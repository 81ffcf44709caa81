"""smolagents: results of tools, the matching of calls, and the context of tools."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedFunctionDecorator=false, reportUnknownArgumentType=false

import asyncio
import itertools
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image
from smolagents import Tool, tool

from limelight import current, status
from limelight.events import ArtifactMade, RunFailed, RunFinished, Status, StepFinished, ToolFinished, ToolStarted
from limelight.sources.smolagents.files import result_of
from limelight.sources.smolagents.instrument import StepCalls
from tests.sources.live_turn import run_agent, serve_agent
from tests.sources.smolagents.smolagents_scenarios import DONE, ONE_TOOL, calling, coding, odd

ANSWERED = "{tool_calls: [{name: final_answer, arguments: {answer: All done.}}]}"


def _code(code: str) -> str:
    """A step with this code."""
    return "{text: " + json.dumps(f"Now.\n<code>\n{code}\n</code>") + "}"


def odd_call(kind: str, calls: int = 1) -> str:
    made = "".join(f"        - {{name: odd, arguments: {{kind: {kind}}}}}\n" for _ in range(calls))
    return f"- steps:\n    - tool_calls:\n{made}{DONE}"


@pytest.mark.parametrize(
    ("kind", "result"),
    [
        ("none", ""),
        ("dict", {"1": "one", "when": "2001-02-03", "kinds": [1]}),
        ("unicode", "half of a pair: ?"),
        ("object", "<odd thing>"),
        ("unprintable", "<Unprintable: RuntimeError>"),
    ],
)
async def test_unusual_result_becomes_json_or_text(kind: str, result: Any, tmp_path: Path) -> None:
    run = await run_agent(calling(odd), odd_call(kind), tmp_path)
    call = run.call("odd")
    if kind == "unprintable":  # smolagents itself has to print it for the model
        assert "RuntimeError" in str(call.result)
        assert isinstance(run.terminal, RunFinished | RunFailed)
        return
    assert call.result == result
    assert run.answer == "All done."


async def test_huge_result_is_kept_complete(tmp_path: Path) -> None:
    async with serve_agent(calling(odd), odd_call("huge"), tmp_path) as server:
        run = await server.run()
        call = run.call("odd")
        assert call.finished.truncated and call.finished.size >= 5_000_000
        whole = (await server.served.http.get(call.finished.result_url)).json()
    assert whole["result"] == "y" * 5_000_000


@pytest.mark.parametrize(("kind", "media_type"), [("bytes", "application/octet-stream"), ("image", "image/png")])
async def test_files_and_images_in_a_result_are_artifacts_of_the_call(
    kind: str, media_type: str, tmp_path: Path
) -> None:
    async with serve_agent(calling(odd), odd_call(kind), tmp_path) as server:
        run = await server.run()
        made = run.one(ArtifactMade)
        call = run.call("odd")
        assert (made.media_type, made.call_id) == (media_type, call.call_id)
        assert call.started_at < run.at(made) < call.ended_at
        assert made.name in str(call.result)
        body = (await server.served.http.get(f"/artifacts/{made.artifact_id}")).content
    assert body.startswith(b"\x89PNG" if kind == "image" else b"\x00\x01")


async def test_image_of_a_step_callback_is_an_artifact_once(tmp_path: Path) -> None:
    screenshot = Image.new("RGB", (3, 3), "green")

    def look(step: Any, agent: Any) -> None:
        step.observations_images = [screenshot]

    run = await run_agent(calling(step_callbacks=[look]), ONE_TOOL, tmp_path)
    made = run.one(ArtifactMade)
    assert (made.name, made.media_type, made.call_id) == ("observation-1.png", "image/png", "")


class AgentAudio(str):
    """As smolagents' class, which needs torch."""

    def to_string(self) -> str:
        return str.__str__(self)


def test_audio_result_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    made = result_of(AgentAudio(tmp_path / "a.wav"), "speak")
    assert [(file.data, file.media_type) for file in made.files] == [(b"RIFF", "audio/wav")]
    assert result_of(AgentAudio("nowhere.wav"), "speak").files == []


async def test_unknown_tool_with_a_long_name_fails_and_the_run_continues(tmp_path: Path) -> None:
    name = "a" * 200
    run = await run_agent(
        calling(), f"- steps: [{{tool_calls: [{{name: {name}, arguments: {{}}}}]}}]\n{DONE}", tmp_path
    )
    assert run.call(name).error
    assert run.answer == "All done."


async def test_parallel_calls_show_their_results_when_one_fails(tmp_path: Path) -> None:
    script = f"""
- steps:
    - tool_calls:
        - {{name: fail, arguments: {{reason: no luck}}}}
        - {{name: slow, arguments: {{name: it, seconds: 0.2}}}}
{DONE}"""
    run = await run_agent(calling(), script, tmp_path)
    assert run.call("fail").error == "ValueError: no luck"
    assert run.call("slow").result == "it is done"
    assert run.all(StepFinished)[0].error == "ValueError: no luck"


async def test_calls_with_equal_ids_get_unique_ids_and_all_end(tmp_path: Path) -> None:
    script = f"""
- steps:
    - tool_calls:
        - {{id: same, name: add, arguments: {{a: 1, b: 1}}}}
        - {{id: same, name: add, arguments: {{a: 2, b: 2}}}}
{DONE}"""
    run = await run_agent(calling(), script, tmp_path)
    assert len({call.call_id for call in run.all(ToolStarted)}) == 2
    ended = run.all(ToolFinished)
    assert sorted(str(end.error) for end in ended) == ["None", "the call was never run"]  # smolagents runs one of them


class Fetch(Tool):
    """smolagents' decorator accepts no coroutine functions; its base class does, but does not await them."""

    name = "fetch"
    description = "Fetch a page."
    inputs = {"page": {"type": "string", "description": "Which."}}  # noqa: RUF012  (as smolagents has it)
    output_type = "string"

    async def forward(self, page: str) -> str:
        await asyncio.sleep(0)
        status(f"Fetching {page}")
        context = current()
        return f"{page} for {context.user.user_id if context else 'no user'}"


def test_started_call_is_found_by_the_identity_of_its_arguments() -> None:
    observer: Any = SimpleNamespace(next_call_number=itertools.count(1).__next__)
    calls = StepCalls(observer)
    made = [SimpleNamespace(name="add", arguments={"a": number}) for number in (1, 1, 2)]
    numbers = [calls.add(call) for call in made]
    assert calls.start("add", made[2].arguments) == numbers[2]
    assert calls.start("add", made[1].arguments) == numbers[1]
    assert calls.not_started(made[0]) == numbers[0] and calls.not_started(made[1]) == 0
    assert calls.start("other", {}) == 0
    assert calls.start("add", {}) == numbers[0]  # for no arguments smolagents makes an object of its own
    assert calls.start("add", made[0].arguments) == 0


async def test_async_tool_is_awaited(tmp_path: Path) -> None:
    script = f"- steps: [{{tool_calls: [{{name: fetch, arguments: {{page: one}}}}]}}]\n{DONE}"
    run = await run_agent(calling(Fetch()), script, tmp_path)
    assert run.call("fetch").result == "one for local"
    assert Status(text="Fetching one") in run.events


async def test_parallel_tools_have_the_context_of_their_run(tmp_path: Path) -> None:
    @tool
    def whose(question: str) -> str:
        """Say for whom this is.

        Args:
            question: Anything.
        """
        context = current()
        return context.session_id if context else "no session"

    script = f"""
- steps:
    - tool_calls:
        - {{name: whose, arguments: {{question: a}}}}
        - {{name: whose, arguments: {{question: b}}}}
{DONE}"""
    run = await run_agent(calling(whose), script, tmp_path, session_id="mine")
    assert [run.call("whose", n).result for n in range(2)] == ["mine", "mine"]


@tool
def breaking(kind: str) -> str:
    """Break.

    Args:
        kind: What.
    """
    raise OSError("there is no file caf\ud800.txt")


HALVES = {
    "a tool raises": (calling(breaking), "{tool_calls: [{name: breaking, arguments: {kind: a}}]}"),
    "a tool raises in code": (coding(breaking), _code("breaking('a')")),
    "code prints": (coding(breaking), _code("print(chr(0xD800))")),
    "the last value": (coding(breaking), _code("x = chr(0xD800) * 2\nx")),
    "the answer": (coding(breaking), _code("final_answer(chr(0xD800))")),
}


@pytest.mark.parametrize("case", HALVES)
async def test_lone_surrogate_in_a_result_does_not_break_the_session(case: str, tmp_path: Path) -> None:
    """It stays in the agent's memory, and is replaced in requests, which cannot contain it."""
    make, step = HALVES[case]
    done = _code("final_answer('All done.')") if step.startswith("{text") else ANSWERED
    going = f"- match: go\n  turns:\n    - steps: [{step}]\n    - steps: [{done}]\n"
    turns = f"- match: again\n  turns: [{{steps: [{done}]}}]\n{going}"
    async with serve_agent(make, turns, tmp_path) as server:
        for question in ("go", "again", "again"):
            run = await server.run(question, session_id="a")
            assert isinstance(run.terminal, RunFinished), (question, run.terminal)
    assert run.answer == "All done."
