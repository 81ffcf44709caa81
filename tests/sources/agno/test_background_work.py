"""Agno: what Agno does beside the answer is shown with its content: follow-ups, memories, summaries."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# Agno's own types are partly unknown.

from pathlib import Path
from types import SimpleNamespace as Namespace
from typing import Any

import pytest
from agno.db.schemas import UserMemory
from agno.db.sqlite import SqliteDb
from agno.memory import MemoryManager

from limelight.events import FinalAnswer, Status
from limelight.sources.agno.translator import AgnoTranslator
from tests.sources.agno.agno_scenarios import plain, team
from tests.sources.conformance import ANSWER
from tests.sources.live_turn import ModelEndpoint, run_agent

pytestmark = pytest.mark.usefixtures("agno_models")


@pytest.mark.requirement("agno-background-work")
@pytest.mark.parametrize("make", [plain, team])
async def test_follow_ups_are_shown(make: Any, tmp_path: Path) -> None:
    script = """
- match: "suggest"
  turns:
    - steps: [{text: '{"suggestions": ["And bees?", "And wasps?"]}'}]
- turns:
    - steps: [{text: All done.}]
"""
    run = await run_agent(lambda endpoint: make(endpoint, followups=True, num_followups=2), script, tmp_path)
    texts = [status.text for status in run.all(Status)]
    assert texts == ["Thinking of what to ask next", "Suggested follow-ups: And bees? · And wasps?"]
    assert run.one(FinalAnswer).content == ANSWER


class Remembering(MemoryManager):
    """A memory manager that needs no model."""

    async def acreate_user_memories(self, *args: Any, **kwargs: Any) -> str:
        assert isinstance(self.db, SqliteDb)
        self.db.upsert_user_memory(UserMemory(memory="The user likes bees.", memory_id="1", user_id=kwargs["user_id"]))
        return "done"


async def test_memories_are_shown(tmp_path: Path) -> None:
    db = SqliteDb(db_file=str(tmp_path / "own.db"))

    def make(endpoint: ModelEndpoint) -> Any:
        return plain(endpoint, db=db, update_memory_on_run=True, memory_manager=Remembering(db=db))

    run = await run_agent(make, "- steps: [{text: All done.}]", tmp_path, "remember that I like bees")
    assert [status.text for status in run.all(Status)] == ["Updating the memory", "Memory: The user likes bees."]
    db.close()


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"event": "MemoryUpdateCompleted", "memories": [Namespace(memory="a"), Namespace(memory="b")]},
            "Memory: a · b",
        ),
        (
            {"event": "SessionSummaryCompleted", "session_summary": Namespace(summary="They spoke.")},
            "Summary of the conversation: They spoke.",
        ),
        (
            {
                "event": "TeamCompressionCompleted",
                "tool_results_compressed": 2,
                "original_size": 900,
                "compressed_size": 100,
            },
            "Shortened 2 results of tools, from 900 to 100 characters",
        ),
        (
            {"event": "CompactionCompleted", "messages_compacted": 7, "tokens_before": 90, "tokens_after": 10},
            "Shortened 7 messages, from 90 to 10 tokens",
        ),
        ({"event": "CompactionCompleted", "messages_compacted": 7, "tokens_before": None}, "Shortened 7 messages"),
    ],
)
def test_results_of_background_work_become_statuses(fields: dict[str, Any], text: str) -> None:
    event = Namespace(run_id="main", parent_run_id=None, **fields)
    assert AgnoTranslator().feed(event) == [Status(text=text)]


def test_background_work_without_a_result_is_not_shown() -> None:
    assert AgnoTranslator().feed(Namespace(event="FollowupsCompleted", run_id="main", followups=None)) == []
