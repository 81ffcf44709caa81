"""smolagents, played by real agents against the understudy: the scenarios that every source plays, and its own."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedFunctionDecorator=false, reportUnknownArgumentType=false

import asyncio
import itertools
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, get_args

import pytest
from PIL import Image
from smolagents import OpenAIModel, Tool, tool
from smolagents import agents as smolagents_agents

from limelight import current, status
from limelight.events import (
    AgentFinished,
    AgentStarted,
    ArtifactMade,
    FinalAnswer,
    Plan,
    RunFailed,
    RunFinished,
    Status,
    StepFinished,
    StepStarted,
    TextDelta,
    TextFinished,
    ToolFinished,
    ToolStarted,
    Usage,
)
from limelight.sources.base import Item, Options, Source
from limelight.sources.smolagents import SmolagentsSource
from limelight.sources.smolagents.calls import Calls
from limelight.sources.smolagents.outputs import outcome_of
from limelight.sources.smolagents.tapping import DROPS, HEARD
from limelight.understudy.scripts import parse_scripts
from limelight.understudy.server import Understudy
from tests.sources.conformance import Case
from tests.sources.played import Played, Stage, theatre
from tests.sources.recording import recorded, said
from tests.sources.smolagents_cast import (
    CASES,
    DONE,
    ONE_TOOL,
    PARALLEL_SUB_AGENTS,
    PLAN,
    TEXT,
    calling,
    coding,
    leading,
    model_at,
    odd,
)
from tests.sources.suite import SourceSuite
from tests.sources.turns import new_turn


class TestSmolagents(SourceSuite):
    source: ClassVar[type[Source]] = SmolagentsSource
    cases: ClassVar[Mapping[str, Case]] = CASES


async def play(make: Any, script: str, data: Path, question: str = "go", **body: Any) -> Played:
    async with theatre(make, script, data) as stage:
        return await stage.play(question, **body)


# Who is taken


def test_agents_are_known_without_loading_the_framework() -> None:
    code = (
        "import sys; from limelight.sources.smolagents import SmolagentsSource as S; "
        "assert not S.accepts(lambda: 1) and not S.accepts(object()); "
        "assert 'smolagents' not in sys.modules and 'PIL' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_agents_of_both_kinds_and_their_subclasses_are_taken() -> None:
    stage = Stage("http://127.0.0.1:1/v1", "key")

    class Mine(smolagents_agents.CodeAgent):
        pass

    made = Mine(tools=[], model=model_at(stage), name="mine", description="Does things.\nAnd more.")
    assert SmolagentsSource.accepts(made)
    assert SmolagentsSource.accepts(calling()(stage))
    assert not SmolagentsSource.accepts(Mine)
    assert SmolagentsSource(made).description == "Does things."


def test_all_that_smolagents_yields_is_heard_or_dropped_with_a_reason() -> None:
    yielded = {kind.__name__ for kind in get_args(smolagents_agents.StreamEvent)}
    assert yielded == HEARD | DROPS.keys()
    assert not HEARD & DROPS.keys()


# Answers


def answering(answer: str) -> str:
    return f"- steps:\n    - tool_calls: [{{name: final_answer, arguments: {{answer: {answer}}}}}]\n"


async def test_a_structured_answer_is_told_apart(tmp_path: Path) -> None:
    script = answering(
        '{title: Bees, content: They dance., sources: ["https://a.example", {url: "https://b.example"}]}'
    )
    answer = (await play(calling(), script, tmp_path)).one(FinalAnswer)
    assert (answer.title, answer.content) == ("Bees", "They dance.")
    assert answer.sources == ("https://a.example", "https://b.example")


async def test_a_structured_answer_that_comes_as_text_is_told_apart_too(tmp_path: Path) -> None:
    script = answering("""'{"title": "Bees", "content": "They dance."}'""")
    answer = (await play(calling(), script, tmp_path)).one(FinalAnswer)
    assert (answer.title, answer.content) == ("Bees", "They dance.")


async def test_a_list_is_a_list(tmp_path: Path) -> None:
    run = await play(calling(), answering("[1, two, {three: 3}]"), tmp_path)
    assert run.answer == [1, "two", {"three": 3}]


async def test_an_answer_of_nothing_is_an_answer(tmp_path: Path) -> None:
    run = await play(calling(), answering("null"), tmp_path)
    assert run.answer == ""
    assert isinstance(run.terminal, RunFinished)


async def test_the_answer_is_no_tool_call(tmp_path: Path) -> None:
    run = await play(calling(), TEXT, tmp_path)
    assert run.all(ToolStarted) == []
    assert run.all(TextDelta) == []


async def test_an_answer_that_a_check_rejects_is_not_final(tmp_path: Path) -> None:
    def is_long(answer: Any, memory: Any, agent: Any) -> bool:
        return len(answer) > 5

    run = await play(calling(final_answer_checks=[is_long]), answering("no") + DONE, tmp_path)
    assert run.answer == "All done."
    first, second = run.all(StepFinished)
    assert "is_long" in (first.error or "") and second.error is None


async def test_what_a_check_asks_the_model_is_not_the_agents_thought(tmp_path: Path) -> None:
    def judged(answer: Any, memory: Any, agent: Any) -> bool:
        return "fine" in agent.model.generate([{"role": "user", "content": "judge this"}]).content

    script = """
- match: judge this
  turns: [{steps: [{text: It is fine.}, {usage: {input: 5, output: 3}}]}]
- turns:
    - steps:
        - text: I answer.
        - tool_calls: [{name: final_answer, arguments: {answer: All done.}}]
"""
    run = await play(calling(final_answer_checks=[judged]), script, tmp_path)
    assert run.reasoning() == "I answer."
    assert run.text() == ""
    assert Usage(model="understudy", input_tokens=5, output_tokens=3) in run.events


async def test_an_answer_beside_another_tool_is_not_final(tmp_path: Path) -> None:
    script = """
- steps:
    - tool_calls:
        - {name: final_answer, arguments: {answer: Too early.}}
        - {name: add, arguments: {a: 1, b: 1}}
"""
    run = await play(calling(), script + DONE, tmp_path)
    assert run.answer == "All done."
    assert run.call("add").result == 2
    assert "do not perform any other tool calls" in (run.all(StepFinished)[0].error or "")


async def test_text_without_a_call_is_a_thought_and_the_agent_goes_on(tmp_path: Path) -> None:
    run = await play(calling(), "- steps:\n    - text: Just talking.\n" + DONE, tmp_path)
    assert run.reasoning() == "Just talking."
    assert run.all(StepFinished)[0].error
    assert run.answer == "All done."


# The limit of steps

ADDING = """
- steps: [{tool_calls: [{name: add, arguments: {a: 1, b: 1}}]}]
- steps: [{tool_calls: [{name: add, arguments: {a: 2, b: 2}}]}]
- steps: [{text: "Ran out of steps, but it is 4."}]
"""


async def test_at_the_limit_the_answer_is_kept_and_no_step_is_told_twice(tmp_path: Path) -> None:
    run = await play(calling(max_steps=2), ADDING, tmp_path)
    assert run.terminal == RunFinished(code="max_steps")
    assert [s.number for s in run.all(StepStarted)] == [s.number for s in run.all(StepFinished)] == [1, 2]
    assert [c.name for c in run.all(ToolStarted)] == ["add", "add"]
    answer = run.one(FinalAnswer)
    assert answer.content == run.text() == "Ran out of steps, but it is 4."
    assert answer.message_id == run.one(TextFinished).message_id
    assert len(run.all(Usage)) == 3


async def configured(options: Options, script: str) -> list[Item]:
    """All that a source with these options gives for one turn."""
    async with Understudy(parse_scripts(script)) as understudy:
        source = SmolagentsSource(calling()(Stage(understudy.base_url, understudy.key)), options)
        return [item async for item in source.run(new_turn("go"))]


async def test_the_limit_can_be_configured() -> None:
    items = await configured(Options(max_steps=2), ADDING)
    assert items[-1] == RunFinished(code="max_steps")


async def test_a_model_that_fails_at_the_limit_leaves_what_smolagents_says(tmp_path: Path) -> None:
    script = "\n".join(ADDING.strip().splitlines()[:1]) + "\n- steps: [{error: {status: 500, message: On fire.}}]\n"
    run = await play(calling(max_steps=1), script, tmp_path)
    assert run.terminal == RunFinished(code="max_steps")
    assert "On fire." in run.answer


async def test_plans_can_be_configured() -> None:
    items = await configured(Options(planning_interval=1), PLAN)
    assert len([item for item in items if isinstance(item, Plan)]) == 2


# Managed agents

DEEP = """
- match: the inner task
  turns:
    - steps: [{text: I am the innermost.}, {tool_calls: [{name: add, arguments: {a: 2, b: 3}}]}]
    - steps: [{tool_calls: [{name: final_answer, arguments: {answer: Five.}}]}]
- match: the outer task
  turns:
    - steps: [{tool_calls: [{name: inner, arguments: {task: do the inner task}}]}]
    - steps: [{tool_calls: [{name: final_answer, arguments: {answer: It is five.}}]}]
- turns:
    - steps: [{tool_calls: [{name: outer, arguments: {task: do the outer task}}]}]
    - steps: [{tool_calls: [{name: final_answer, arguments: {answer: All done.}}]}]
"""


async def test_agents_are_managed_at_any_depth(tmp_path: Path) -> None:
    def make(stage: Stage) -> object:
        inner = calling(name="inner", description="Inner.")(stage)
        outer = calling(name="outer", description="Outer.", managed_agents=[inner])(stage)
        return calling(managed_agents=[outer])(stage)

    run = await play(make, DEEP, tmp_path)
    outer, inner = run.agent("outer"), run.agent("inner")
    assert (outer.parent_id, inner.parent_id) == ("", outer.agent_id)
    assert run.call("inner").started.agent_id == outer.agent_id
    assert run.call("add").started.agent_id == inner.agent_id
    assert inner.call_id == run.call("inner").call_id
    assert run.reasoning(inner.agent_id) == "I am the innermost."
    assert run.answer == "All done."


async def test_a_managed_agent_whose_model_fails_is_seen_to_and_its_manager_goes_on(tmp_path: Path) -> None:
    script = """
- match: a hopeless task
  turns: [{steps: [{error: {status: 500, message: On fire.}}]}]
- turns:
    - steps: [{tool_calls: [{name: helper, arguments: {task: a hopeless task}}]}]
    - steps: [{tool_calls: [{name: final_answer, arguments: {answer: All done.}}]}]
"""

    def make(stage: Stage) -> object:
        return calling(managed_agents=[calling(name="helper", description="Helps.")(stage)])(stage)

    run = await play(make, script, tmp_path)
    assert "On fire." in (run.one(AgentFinished).error or "")
    assert "On fire." in (run.call("helper").error or "")
    assert run.answer == "All done."


async def test_managed_agents_at_once_do_not_share_a_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = recorded(monkeypatch)
    run = await play(leading(calling, calling), PARALLEL_SUB_AGENTS, tmp_path)
    helpers = [str(said(request)) for request in requests if "helpful agent" in str(said(request)[0])]
    assert len(helpers) == 4
    assert not [text for text in helpers if "first job" in text and "second job" in text]
    first = next(call for call in (run.call("helper", 0), run.call("helper", 1)) if "first" in call.args["task"])
    assert "The first is done." in str(first.result)


async def test_one_managed_agent_after_the_other_has_ids_of_its_own(tmp_path: Path) -> None:
    script = """
- match: a small task
  turns: [{steps: [{tool_calls: [{name: final_answer, arguments: {answer: Done.}}]}]}]
- turns:
    - steps: [{tool_calls: [{id: same, name: helper, arguments: {task: a small task}}]}]
    - steps: [{tool_calls: [{id: same, name: helper, arguments: {task: a small task}}]}]
    - steps: [{tool_calls: [{name: final_answer, arguments: {answer: All done.}}]}]
"""

    def make(stage: Stage) -> object:
        return calling(managed_agents=[calling(name="helper", description="Helps.")(stage)])(stage)

    run = await play(make, script, tmp_path)
    assert [a.agent_id for a in run.all(AgentStarted)] == ["helper-1", "helper-2"]
    assert len({a.call_id for a in run.all(AgentStarted)}) == 2


# What tools return


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
async def test_odd_results(kind: str, result: Any, tmp_path: Path) -> None:
    run = await play(calling(odd), odd_call(kind), tmp_path)
    call = run.call("odd")
    if kind == "unprintable":  # smolagents itself has to print it for the model
        assert "RuntimeError" in str(call.result)
        assert isinstance(run.terminal, RunFinished | RunFailed)
        return
    assert call.result == result
    assert run.answer == "All done."


async def test_a_huge_result_is_kept_whole(tmp_path: Path) -> None:
    async with theatre(calling(odd), odd_call("huge"), tmp_path) as stage:
        run = await stage.play()
        call = run.call("odd")
        assert call.finished.truncated and call.finished.size >= 5_000_000
        whole = (await stage.served.http.get(call.finished.result_url)).json()
    assert whole["result"] == "y" * 5_000_000


@pytest.mark.parametrize(("kind", "media_type"), [("bytes", "application/octet-stream"), ("image", "image/png")])
async def test_files_and_pictures_are_artifacts_of_their_call(kind: str, media_type: str, tmp_path: Path) -> None:
    async with theatre(calling(odd), odd_call(kind), tmp_path) as stage:
        run = await stage.play()
        made = run.one(ArtifactMade)
        call = run.call("odd")
        assert (made.media_type, made.call_id) == (media_type, call.call_id)
        assert call.begun_at < run.at(made) < call.ended_at
        assert made.name in str(call.result)
        body = (await stage.served.http.get(f"/artifacts/{made.artifact_id}")).content
    assert body.startswith(b"\x89PNG" if kind == "image" else b"\x00\x01")


async def test_what_a_callback_puts_before_the_agents_eyes_is_an_artifact_once(tmp_path: Path) -> None:
    screenshot = Image.new("RGB", (3, 3), "green")

    def look(step: Any, agent: Any) -> None:
        step.observations_images = [screenshot]

    run = await play(calling(step_callbacks=[look]), ONE_TOOL, tmp_path)
    made = run.one(ArtifactMade)
    assert (made.name, made.media_type, made.call_id) == ("observation-1.png", "image/png", "")


class AgentAudio(str):
    """As smolagents has it, which needs torch to make one."""

    def to_string(self) -> str:
        return str.__str__(self)


def test_a_sound_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    made = outcome_of(AgentAudio(tmp_path / "a.wav"), "speak")
    assert [(file.data, file.media_type) for file in made.files] == [(b"RIFF", "audio/wav")]
    assert outcome_of(AgentAudio("nowhere.wav"), "speak").files == []


async def test_a_tool_with_an_endless_name_is_called_in_vain(tmp_path: Path) -> None:
    name = "a" * 200
    run = await play(calling(), f"- steps: [{{tool_calls: [{{name: {name}, arguments: {{}}}}]}}]\n{DONE}", tmp_path)
    assert run.call(name).error
    assert run.answer == "All done."


async def test_of_parallel_calls_one_fails_and_the_others_show_what_they_returned(tmp_path: Path) -> None:
    script = f"""
- steps:
    - tool_calls:
        - {{name: fail, arguments: {{reason: no luck}}}}
        - {{name: slow, arguments: {{name: it, seconds: 0.2}}}}
{DONE}"""
    run = await play(calling(), script, tmp_path)
    assert run.call("fail").error == "ValueError: no luck"
    assert run.call("slow").result == "it is done"
    assert run.all(StepFinished)[0].error == "ValueError: no luck"


async def test_calls_with_one_id_are_told_apart_and_none_stays_open(tmp_path: Path) -> None:
    script = f"""
- steps:
    - tool_calls:
        - {{id: same, name: add, arguments: {{a: 1, b: 1}}}}
        - {{id: same, name: add, arguments: {{a: 2, b: 2}}}}
{DONE}"""
    run = await play(calling(), script, tmp_path)
    assert len({call.call_id for call in run.all(ToolStarted)}) == 2
    ended = run.all(ToolFinished)
    assert sorted(str(end.error) for end in ended) == ["None", "the call was never run"]  # smolagents runs one of them


class Fetch(Tool):
    """smolagents' decorator takes no coroutine functions; its base class does, and then does not await them."""

    name = "fetch"
    description = "Fetch a page."
    inputs = {"page": {"type": "string", "description": "Which."}}  # noqa: RUF012  (as smolagents has it)
    output_type = "string"

    async def forward(self, page: str) -> str:
        await asyncio.sleep(0)
        status(f"Fetching {page}")
        context = current()
        return f"{page} for {context.user.user_id if context else 'nobody'}"


def test_the_call_that_runs_is_known_by_its_very_arguments() -> None:
    observer: Any = SimpleNamespace(ticket=itertools.count(1).__next__)
    calls = Calls(observer)
    made = [SimpleNamespace(name="add", arguments={"a": number}) for number in (1, 1, 2)]
    tickets = [calls.made(call) for call in made]
    assert calls.begins("add", made[2].arguments) == tickets[2]
    assert calls.begins("add", made[1].arguments) == tickets[1]
    assert calls.unheard(made[0]) == tickets[0] and calls.unheard(made[1]) == 0
    assert calls.begins("other", {}) == 0
    assert calls.begins("add", {}) == tickets[0]  # for no arguments smolagents makes an object of its own
    assert calls.begins("add", made[0].arguments) == 0


async def test_an_async_tool_is_awaited(tmp_path: Path) -> None:
    script = f"- steps: [{{tool_calls: [{{name: fetch, arguments: {{page: one}}}}]}}]\n{DONE}"
    run = await play(calling(Fetch()), script, tmp_path)
    assert run.call("fetch").result == "one for local"
    assert Status(text="Fetching one") in run.events


async def test_tools_that_run_at_once_know_whose_run_it_is(tmp_path: Path) -> None:
    @tool
    def whose(question: str) -> str:
        """Say for whom this is.

        Args:
            question: Anything.
        """
        context = current()
        return context.session_id if context else "nobody's"

    script = f"""
- steps:
    - tool_calls:
        - {{name: whose, arguments: {{question: a}}}}
        - {{name: whose, arguments: {{question: b}}}}
{DONE}"""
    run = await play(calling(whose), script, tmp_path, session_id="mine")
    assert [run.call("whose", n).result for n in range(2)] == ["mine", "mine"]


# With a model that improvises


@pytest.mark.parametrize("make", [leading(calling, calling), leading(coding, coding), leading(coding, calling)])
@pytest.mark.parametrize("question", ["What is 17 * 23?", "two helpers at once", "try an error, and an approval"])
async def test_an_improvised_run_comes_to_its_answer(make: Any, question: str, tmp_path: Path) -> None:
    run = await play(make, "", tmp_path, question)
    assert isinstance(run.terminal, RunFinished), run.terminal
    assert run.answer
    if question.startswith("two"):
        assert {a.name for a in run.all(AgentStarted)} == {"helper"}


# The console


@pytest.mark.parametrize("make", [calling(stream_outputs=True), calling(), coding()])
async def test_nothing_is_printed(make: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    await play(make, ONE_TOOL, tmp_path)
    out, err = capfd.readouterr()
    assert out == ""
    assert "Step" not in err and "New run" not in err


async def test_a_model_that_cannot_stream_is_heard_all_the_same(tmp_path: Path) -> None:
    def make(stage: Stage) -> object:
        agent: Any = calling()(stage)

        class Careful(OpenAIModel):
            def generate(self, *args: Any, **kwargs: Any) -> Any:
                return super().generate(*args, **kwargs)

        agent.model.__class__ = Careful
        return agent

    run = await play(make, ONE_TOOL, tmp_path)
    assert run.reasoning() == "I add them."
    assert run.call("add").started.args == {"a": 2, "b": 3}
    assert sum(u.input_tokens for u in run.all(Usage)) == 200


async def test_a_model_that_fails_says_so_in_a_sentence(tmp_path: Path) -> None:
    run = await play(calling(), "- steps: [{error: {status: 500, message: On fire.}}]\n", tmp_path)
    failed = run.one(RunFailed)
    assert failed.message == "InternalServerError: Error code: 500 - On fire."
