"""Agent memories: which one a turn continues, and when a source forgets or releases one."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from limelight.events import FinalAnswer, RunFinished, RunStarted, TextDelta, TextFinished, ToolFinished, ToolStarted
from limelight.messages import Message
from limelight.models import SessionRef
from limelight.runs.agent_registry import Agent, Agents
from limelight.runs.conversation_memory import Memories, fingerprint
from limelight.runs.limits import MemoryLimits
from limelight.sources.base import NO_OPTIONS, Item, Options, Source, Turn
from limelight.stores.sqlite import SqliteStore
from tests.stores.operations import S1, begin, opened
from tests.support.server import serving


class RecordingSource(Source):
    """A source that records which memories it has to forget or to release."""

    framework: ClassVar[str] = "test"
    keeps_memory: ClassVar[bool] = True

    def __init__(self, target: object, options: Options = NO_OPTIONS) -> None:
        self.forgotten: list[str] = []
        self.unloaded: list[str] = []
        self.held: dict[str, int] = {}
        self.fails = False

    @classmethod
    def accepts(cls, target: object) -> bool:
        return False

    @property
    def description(self) -> str:
        return ""

    async def run(self, turn: Turn) -> AsyncGenerator[Item, None]:
        yield RunFinished()

    async def forget(self, memory_key: str) -> None:
        self.forgotten.append(memory_key)
        if self.fails:
            raise RuntimeError("the framework's database is gone")

    def held_bytes(self, memory_key: str) -> int:
        return self.held.get(memory_key, 0)

    async def unload(self, memory_key: str) -> None:
        self.unloaded.append(memory_key)
        if self.fails:
            raise RuntimeError("the container is gone")


DEFAULT_LIMITS = MemoryLimits()


class Session:
    """Turns of one session, by their messages."""

    def __init__(self, store: SqliteStore, idle_seconds: float = 3600, limits: MemoryLimits = DEFAULT_LIMITS) -> None:
        self.store = store
        self.source = RecordingSource(None)
        self.agent = Agent(name="deep", source=self.source, title="", description="")
        self.memories = Memories(store, Agents([self.agent]), idle_seconds, limits)
        self.turns = 0

    async def key(self, *texts: str, ref: SessionRef = S1, continues_session: bool = True) -> str:
        """The memory that a request with these messages gets; user and assistant take turns."""
        self.turns += 1
        messages = [message(("user", "assistant")[n % 2], text) for n, text in enumerate(texts)]
        return (await self.memories.recall(self.agent, ref, f"r{self.turns}", messages, continues_session)).key

    async def held(self, owner: str, session_id: str, size: int) -> str:
        """Run a turn after which the conversation holds this many bytes. Return its memory key."""
        key = await self.key("one", ref=SessionRef(owner, session_id))
        self.source.held[key] = size
        self.memories.done(f"r{self.turns}")
        return key


def message(role: str, content: Any) -> Message:
    return Message(role=role, content=content)


@pytest.fixture
async def session(tmp_path: Path) -> AsyncGenerator[Session]:
    async with opened(lambda: SqliteStore(tmp_path / "limelight.db")) as store:
        assert isinstance(store, SqliteStore)
        yield Session(store)


async def test_request_with_one_message_continues_the_session(session: Session) -> None:
    first = await session.key("one")
    assert await session.key("two") == first
    assert await session.key("one") == first


async def test_chat_request_with_one_message_starts_a_new_memory(session: Session) -> None:
    first = await session.key("one", continues_session=False)
    assert await session.key("two", continues_session=False) != first


async def test_same_user_messages_continue_the_session_whatever_the_answers_are(session: Session) -> None:
    first = await session.key("one")
    assert await session.key("one", "answer", "two") == first
    assert await session.key("one", "ANSWER, cut", "two", "…", "three", continues_session=False) == first


@pytest.mark.requirement("memory-follows-conversation")
@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(("other", "a", "two", "b", "three"), id="edited"),
        pytest.param(("one", "a", "three"), id="shorter"),
        pytest.param(("one", "a", "two", "b", "more", "c", "three"), id="longer"),
    ],
)
async def test_request_with_other_earlier_messages_starts_a_new_memory(
    session: Session, texts: tuple[str, ...]
) -> None:
    first = await session.key("one")
    assert await session.key("one", "a", "two") == first
    assert await session.key(*texts) != first


async def test_regenerated_answer_starts_a_new_memory_that_later_turns_continue(session: Session) -> None:
    first = await session.key("one")
    assert await session.key("one", "a", "two") == first
    again = await session.key("one", "a", "two")
    assert again != first
    assert await session.key("one", "a", "two", "b", "three") == again


async def test_sessions_and_owners_do_not_share_a_memory(session: Session) -> None:
    keys = [await session.key("one", ref=SessionRef(*ref)) for ref in (("ann", "s1"), ("ann", "s2"), ("bob", "s1"))]
    assert len(set(keys)) == 3


async def test_replaced_memory_is_forgotten_by_the_source(session: Session) -> None:
    first = await session.key("one", continues_session=False)
    second = await session.key("other", continues_session=False)
    await session.memories.tidy()
    assert session.source.forgotten == [first]
    assert await session.key("other", "a", "next") == second


async def test_stale_memory_is_forgotten_once_by_two_tasks(session: Session) -> None:
    first = await session.key("one", continues_session=False)
    await session.key("other", continues_session=False)
    await asyncio.gather(session.memories.tidy(), session.memories.tidy())
    assert session.source.forgotten == [first]


async def test_memory_that_the_source_fails_to_forget_is_not_tried_again(session: Session) -> None:
    session.source.fails = True
    first = await session.key("one", continues_session=False)
    await session.key("other", continues_session=False)
    await session.memories.tidy()
    await session.memories.tidy()
    assert session.source.forgotten == [first]


async def test_idle_memory_is_released_once_after_its_run(tmp_path: Path) -> None:
    async with opened(lambda: SqliteStore(tmp_path / "limelight.db")) as store:
        assert isinstance(store, SqliteStore)
        session = Session(store, idle_seconds=-1)
        key = await session.key("one")
        await session.memories.tidy()
        assert session.source.unloaded == []  # its run is live
        session.memories.done("r1")
        await session.memories.tidy()
        await session.memories.tidy()
        assert session.source.unloaded == [key]
        assert await session.key("two") == key


# The limits of memory


@pytest.fixture
async def limited(tmp_path: Path) -> AsyncGenerator[Session]:
    async with opened(lambda: SqliteStore(tmp_path / "limelight.db")) as store:
        assert isinstance(store, SqliteStore)
        yield Session(store, limits=MemoryLimits(bytes_per_user=100, bytes_in_all=250))


@pytest.mark.requirement("conversations-bounded")
async def test_least_recently_used_conversation_of_a_user_over_the_limit_is_freed_first(limited: Session) -> None:
    first, second = await limited.held("ann", "1", 40), await limited.held("ann", "2", 40)
    other = await limited.held("ben", "1", 40)
    await limited.held("ann", "1", 40)
    await limited.memories.free_excess()
    assert limited.source.unloaded == []
    await limited.held("ann", "3", 40)
    await limited.memories.free_excess()
    assert limited.source.unloaded == [second]
    await limited.held("ann", "4", 90)
    await limited.memories.free_excess()
    assert limited.source.unloaded[:2] == [second, first] and other not in limited.source.unloaded


@pytest.mark.requirement("conversations-bounded")
async def test_user_who_holds_the_most_frees_memory_if_all_users_exceed_their_limit(limited: Session) -> None:
    oldest = await limited.held("ben", "1", 60)
    largest = [await limited.held("ann", "1", 50), await limited.held("ann", "2", 50)]
    await limited.held("cid", "1", 95)
    await limited.memories.free_excess()
    assert limited.source.unloaded == [largest[0]]
    assert oldest not in limited.source.unloaded


@pytest.mark.requirement("conversations-bounded")
async def test_conversation_that_alone_exceeds_the_limit_is_freed_instead_of_others(limited: Session) -> None:
    await limited.held("ann", "1", 40)
    large = await limited.held("ann", "2", 101)
    await limited.memories.free_excess()
    assert limited.source.unloaded == [large]


async def test_conversation_of_a_live_run_is_not_freed(limited: Session) -> None:
    large = await limited.held("ann", "1", 101)
    assert await limited.key("two", ref=SessionRef("ann", "1")) == large
    await limited.memories.free_excess()
    assert limited.source.unloaded == []
    limited.memories.done(f"r{limited.turns}")
    await limited.memories.free_excess()
    assert limited.source.unloaded == [large]
    assert await limited.key("three", ref=SessionRef("ann", "1")) == large  # the next turn continues it


async def test_local_user_has_only_the_limit_of_all_users(limited: Session) -> None:
    await limited.held("local", "1", 240)
    await limited.memories.free_excess()
    assert limited.source.unloaded == []
    large = await limited.held("local", "2", 251)
    await limited.memories.free_excess()
    assert limited.source.unloaded == [large]


async def test_conversation_that_the_source_fails_to_free_is_not_tried_again(limited: Session) -> None:
    limited.source.fails = True
    large = await limited.held("ann", "1", 101)
    await limited.memories.free_excess()
    await limited.memories.free_excess()
    assert limited.source.unloaded == [large]


def test_fingerprint_depends_on_text_and_files_only() -> None:
    text = fingerprint(message("user", "hello"))
    assert text == fingerprint(message("user", [{"type": "text", "text": "hello"}]))
    assert text == fingerprint(message("user", " hello\n"))
    assert text != fingerprint(message("user", "hello!"))
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}
    assert text != fingerprint(message("user", [{"type": "text", "text": "hello"}, picture]))
    assert fingerprint(message("user", "\ud800")) == fingerprint(message("user", "\ud800"))


# The history


async def test_history_is_the_earlier_messages_of_the_client(session: Session) -> None:
    await session.key("one")
    messages = [message("user", "one"), message("assistant", "A."), message("system", "x"), message("user", "two")]
    recalled = await session.memories.recall(session.agent, S1, "r9", messages, continues_session=True)
    assert await recalled.history() == messages[:2]


async def test_history_without_earlier_messages_is_read_from_the_log(session: Session) -> None:
    run = await begin(session.store, "r1")
    await run.write(
        RunStarted(agent="deep", input="How many?"),
        ToolStarted(call_id="c1", name="count", args={"what": "bees"}),
        ToolFinished(call_id="c1", result={"bees": 3}),
        TextDelta(message_id="m", text="Three."),
        TextFinished(message_id="m"),
        FinalAnswer(content="Three.", message_id="m"),
    )
    await run.end()
    await session.key("How many?")
    recalled = await session.memories.recall(
        session.agent, S1, "r2", [message("user", "Sure?")], continues_session=True
    )
    history = await recalled.history()
    assert [(m.role, m.text) for m in history] == [
        ("user", "How many?"),
        ("assistant", ""),
        ("tool", '{"bees":3}'),
        ("assistant", "Three."),
    ]
    assert history[1]["tool_calls"][0]["function"] == {"name": "count", "arguments": '{"what":"bees"}'}
    assert history[2]["tool_call_id"] == history[1]["tool_calls"][0]["id"]


class HistoryEcho(RecordingSource):
    """An agent that keeps its state in this process only, and answers with the history that it gets."""

    async def run(self, turn: Turn) -> AsyncGenerator[Item, None]:
        past = [f"{message.role}: {message.text}" for message in await turn.history()]
        yield FinalAnswer(content=" | ".join(past))
        yield RunFinished()


async def test_earlier_messages_of_a_client_are_part_of_the_history_after_a_restart(tmp_path: Path) -> None:
    past = [message("user", "one"), message("assistant", "A."), message("user", "two")]
    answers: list[str] = []
    for messages in (past, [message("user", "three")], [message("user", "four")]):
        echo = Agent(name="echo", source=HistoryEcho(None), title="", description="")
        async with serving(agents=[echo], data=tmp_path) as served:
            response = await served.http.post("/chat", json={"messages": messages, "session_id": "s"})
            answers.append(response.json()["message"]["content"])
    first = "user: one | assistant: A."
    assert answers[0] == first
    assert answers[1] == f"{first} | user: two | assistant: {answers[0]}"
    assert answers[2] == f"{answers[1]} | user: three | assistant: {answers[1]}"
