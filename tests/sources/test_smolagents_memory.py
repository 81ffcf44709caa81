"""Copies and memories: the user's object stays as it was, conversations are apart, and each goes on where it ended."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import asyncio
import base64
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from smolagents import ToolCallingAgent
from smolagents.local_python_executor import CodeOutput, PythonExecutor

from limelight.errors import SetupError
from limelight.events import ReasoningDelta, RunCancelled, RunFailed, RunFinished, Status, StepFinished, ToolStarted
from limelight.messages import Message
from limelight.sources.base import Turn
from limelight.sources.smolagents import SmolagentsSource
from limelight.sources.smolagents.conversation import BROKEN_OFF, Conversation
from limelight.sources.smolagents.copying import copy_of
from limelight.sources.smolagents.history import steps_of
from limelight.understudy.scripts import parse_scripts
from limelight.understudy.server import Understudy
from tests.sources.played import Stage, theatre
from tests.sources.recording import recorded, said
from tests.sources.smolagents_cast import (
    CODE,
    ONE_TOOL,
    PLAN,
    SUB_AGENT,
    TOOL_ERROR,
    TOOLS,
    calling,
    coding,
    leading,
    model_at,
)
from tests.sources.turns import FakeContext, new_turn

TWO_TURNS = """
- match: sum
  turns:
    - steps: [{text: I add.}, {tool_calls: [{name: add, arguments: {a: 2, b: 3}}]}]
    - steps: [{tool_calls: [{name: final_answer, arguments: {answer: It is five.}}]}]
- match: and what
  turns: [{steps: [{tool_calls: [{name: final_answer, arguments: {answer: It was the sum.}}]}]}]
- match: hello
  turns: [{steps: [{tool_calls: [{name: final_answer, arguments: {answer: Hello!}}]}]}]
"""

Requests = list[dict[str, Any]]


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Requests:
    return recorded(monkeypatch)


def told(request: dict[str, Any]) -> str:
    """All that a request says, without the instructions."""
    return "\n".join(f"{role}: {text}" for role, text in said(request))


# Copies


def snapshot(agent: Any) -> dict[str, Any]:
    """All that a run may change in an agent."""
    executor = getattr(agent, "python_executor", None)
    return {
        "attributes": dict(vars(agent)),
        "memory": list(agent.memory.steps),
        "prompt": agent.memory.system_prompt,
        "state": dict(agent.state),
        "tools": dict(agent.tools),
        "managed": {name: snapshot(managed) for name, managed in agent.managed_agents.items()},
        "callbacks": {kind: list(found) for kind, found in agent.step_callbacks._callbacks.items()},
        "monitor": dict(vars(agent.monitor)),
        "durations": list(agent.monitor.step_durations),
        "executor": None if executor is None else dict(vars(executor)),
        "variables": None if executor is None else dict(executor.state),
        "model": dict(vars(agent.model)),
    }


@pytest.mark.parametrize(
    ("make", "script"), [(leading(calling, calling), SUB_AGENT), (coding(), CODE), (leading(coding, coding), CODE)]
)
async def test_the_users_agent_stays_as_it_was(make: Callable[[Stage], Any], script: str, tmp_path: Path) -> None:
    made: list[Any] = []

    def keep(stage: Stage) -> object:
        made.append(make(stage))
        return made[0]

    async with theatre(keep, script, tmp_path) as stage:
        before = snapshot(made[0])
        run = await stage.play(
            messages=[
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "go"},
            ]
        )
        assert isinstance(run.terminal, RunFinished)
        assert snapshot(made[0]) == before


def test_a_copy_shares_tools_and_model_and_nothing_that_changes() -> None:
    agent: Any = leading(coding, calling)(Stage("http://127.0.0.1:1/v1", "key"))
    agent.state["known"] = 1
    agent.notes = ["mine"]
    copied = copy_of(agent)
    assert copied.model is agent.model and copied.tools == agent.tools and copied.tools is not agent.tools
    assert copied.managed_agents["helper"] is not agent.managed_agents["helper"]
    assert copied.state == {"known": 1} and copied.state is not agent.state
    assert copied.notes == ["mine"] and copied.notes is not agent.notes
    assert copied.memory is not agent.memory and copied.python_executor is not agent.python_executor
    updates = [callback for found in copied.step_callbacks._callbacks.values() for callback in found]
    assert [update.__self__ for update in updates] == [copied.monitor]


async def test_callbacks_and_subclasses_work_on_the_copy(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    class Counting(ToolCallingAgent):
        rounds = 0

        def run(self, *args: Any, **kwargs: Any) -> Any:
            self.rounds += 1
            return super().run(*args, **kwargs)

    def note(step: Any, agent: Any) -> None:
        seen.append((agent.rounds, step.step_number))

    made: list[Any] = []

    def make(stage: Stage) -> object:
        made.append(Counting(tools=TOOLS, model=model_at(stage), step_callbacks=[note]))
        return made[0]

    async with theatre(make, TWO_TURNS, tmp_path) as stage:
        await stage.play("hello", session_id="a")
        await stage.play("hello", session_id="a")
        await stage.play("hello", session_id="b")
    assert seen == [(1, 1), (2, 1), (1, 1)]
    assert made[0].rounds == 0


# What the model gets


@pytest.mark.parametrize(
    ("make", "script"),
    [
        (calling(), ONE_TOOL),
        (calling(stream_outputs=True), ONE_TOOL),
        (calling(), TOOL_ERROR),
        (calling(planning_interval=1), PLAN),
        (leading(calling, calling), SUB_AGENT),
        (coding(), CODE),
        (leading(coding, calling), CODE),
    ],
)
async def test_the_model_gets_the_same_with_and_without_us(
    make: Callable[[Stage], Any], script: str, tmp_path: Path, requests: Requests, capsys: pytest.CaptureFixture[str]
) -> None:
    async with theatre(make, script, tmp_path) as stage:
        await stage.play("go")
        ours = requests.copy()
        requests.clear()
        await asyncio.to_thread(lambda: list(make(stage.stage).run("go", stream=True)))
    streaming = {"stream", "stream_options"}
    bare = [[{k: v for k, v in r.items() if k not in streaming} for r in asked] for asked in (ours, requests)]
    assert len(bare[0]) > 1
    assert bare[0] == bare[1]


async def test_what_the_client_instructs_adds_to_the_instructions_of_that_turn(
    tmp_path: Path, requests: Requests
) -> None:
    async with theatre(calling(instructions="Speak plainly."), TWO_TURNS, tmp_path) as stage:
        instructed = [{"role": "system", "content": "Rhyme."}, {"role": "user", "content": "hello"}]
        await stage.play(messages=instructed, session_id="a")
        await stage.play("hello", session_id="a")
    first, second = (str(request["messages"][0]["content"]) for request in requests)
    assert "Speak plainly." in first and "Rhyme." in first
    assert "Speak plainly." in second and "Rhyme." not in second


def picture() -> str:
    buffer = io.BytesIO()
    Image.new("RGB", (2, 2), "blue").save(buffer, format="PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


async def test_a_picture_reaches_the_model_and_is_no_artifact(tmp_path: Path, requests: Requests) -> None:
    content = [
        {"type": "text", "text": "hello"},
        {"type": "image_url", "image_url": {"url": picture()}},
        {"type": "file", "file": {"filename": "notes.txt", "file_data": "data:text/plain,abc"}},
    ]
    async with theatre(calling(), TWO_TURNS, tmp_path) as stage:
        run = await stage.play(messages=[{"role": "user", "content": content}])
    assert "image_url" in str(requests[0]["messages"])
    assert "artifact_made" not in run.kinds and "ArtifactMade" not in run.kinds
    assert [s.text for s in run.all(Status)] == ["Left out, as this agent takes pictures only: notes.txt"]


# Conversations


async def test_a_conversation_goes_on_with_all_that_was_done(tmp_path: Path, requests: Requests) -> None:
    async with theatre(calling(), TWO_TURNS, tmp_path) as stage:
        await stage.play("the sum please", session_id="a")
        requests.clear()
        await stage.play("and what was that?", session_id="a")
    (request,) = requests
    text = told(request)
    assert text.count("the sum please") == 1 and text.count("and what was that?") == 1
    assert text.count("'name': 'add'") == 1 and "I add." in text and "Observation:\n5" in text


async def test_conversations_share_nothing(tmp_path: Path, requests: Requests) -> None:
    async with theatre(calling(), TWO_TURNS, tmp_path) as stage:
        await asyncio.gather(stage.play("the sum please", session_id="a"), stage.play("hello", session_id="b"))
        requests.clear()
        await stage.play("and what?", session_id="b")
    assert "sum" not in told(requests[0])


async def test_who_comes_back_later_is_told_what_was_said(tmp_path: Path, requests: Requests) -> None:
    async with theatre(calling(), TWO_TURNS, tmp_path) as stage:
        await stage.play("the sum please", session_id="a")
        source = stage.served.parts.agents.get("agent").source
        assert isinstance(source, SmolagentsSource)
        await source.close()  # as after an hour, or a restart
        requests.clear()
        await stage.play("and what was that?", session_id="a")
    text = told(requests[0])
    assert text.count("the sum please") == 1
    assert text.count("'name': 'add'") == 1 and text.count("It is five.") == 2  # the call, and what it returned


HISTORY = [
    {"role": "user", "content": "the sum please"},
    {
        "role": "assistant",
        "content": "I add.",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 2, "b": 3}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "5"},
    {"role": "assistant", "content": "It is five."},
]


async def test_the_history_of_a_stateless_client_is_the_agents_past(tmp_path: Path, requests: Requests) -> None:
    asked = {"role": "user", "content": "and what was that?"}
    async with theatre(calling(), TWO_TURNS, tmp_path) as stage:
        run = await stage.play(messages=[*HISTORY, asked])
    assert run.answer == "It was the sum."
    text = told(requests[0])
    assert text.count("the sum please") == 1 and text.count("I add.") == 1 and "Observation:\n5" in text
    assert (
        text.index("the sum please") < text.index("'name': 'add'") < text.index("It is five.") < text.index("and what")
    )


async def test_history_that_the_memory_has_is_not_told_twice(tmp_path: Path, requests: Requests) -> None:
    async with theatre(calling(), TWO_TURNS, tmp_path) as stage:
        await stage.play("the sum please", session_id="a")
        requests.clear()
        again = [*HISTORY, {"role": "user", "content": "and what was that?"}]
        await stage.play(messages=again, session_id="a")
    assert told(requests[0]).count("the sum please") == 1
    assert told(requests[0]).count("'name': 'add'") == 1


async def test_an_edited_past_starts_afresh(tmp_path: Path, requests: Requests) -> None:
    async with theatre(calling(), TWO_TURNS, tmp_path) as stage:
        await stage.play("the sum please", session_id="a")
        requests.clear()
        other = [{"role": "user", "content": "good morning"}, {"role": "assistant", "content": "Morning!"}]
        await stage.play(messages=[*other, {"role": "user", "content": "and what?"}], session_id="a")
    text = told(requests[0])
    assert "good morning" in text and "sum please" not in text


# A past as steps


def messages_of(steps: list[Any]) -> list[tuple[str, str]]:
    made = [message for step in steps for message in step.to_messages()]
    return [(str(message.role.value), message.content[0]["text"]) for message in made]


def test_an_answer_is_the_call_that_it_was() -> None:
    past = [Message(role="user", content="hi"), Message(role="assistant", content="Hello!")]
    task, call, result = messages_of(steps_of(past, None))
    assert task == ("user", "New task:\nhi")
    assert "final_answer" in call[1] and "Hello!" in call[1]
    assert result == ("tool-response", "Observation:\nHello!")


def test_an_answer_of_a_code_agent_is_code() -> None:
    past = [Message(role="user", content="hi"), Message(role="assistant", content='It\'s "here".')]
    steps = messages_of(steps_of(past, ("<code>", "</code>")))
    assert steps[1] == ("assistant", "<code>\nfinal_answer('It\\'s \"here\".')\n</code>")


def test_what_code_has_called_is_not_told_beside_the_code() -> None:
    def called(name: str, arguments: str, call_id: str) -> list[Message]:
        call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        return [
            Message(role="assistant", content="", tool_calls=[call]),
            Message(role="tool", tool_call_id=call_id, content=f"{name} returned"),
        ]

    past = [
        Message(role="user", content="hi"),
        *called("python_interpreter", '{"code": "add(1, 2)"}', "c1"),
        *called("add", '{"a": 1, "b": 2}', "c2"),
    ]
    text = str(messages_of(steps_of(past, ("<code>", "</code>"))))
    assert "python_interpreter returned" in text and "add returned" not in text
    assert text.count("add(1, 2)") == 2  # as it was written, and as it was called


def test_a_past_of_odd_shape_is_taken_as_far_as_it_goes() -> None:
    past = [
        Message(role="tool", tool_call_id="nobody", content="lost"),
        Message(role="assistant", content=None, tool_calls=[{"function": {"name": "add", "arguments": "{broken"}}, 7]),
        Message(
            role="user",
            content=[
                {"type": "text", "text": "hi"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            ],
        ),
    ]
    steps = messages_of(steps_of(past, None))
    assert "{broken" in steps[0][1] and "lost" not in str(steps)
    assert steps[1] == ("user", "New task:\nhi")


# After a turn that was broken off

FAULTS = """
- match: break
  turns:
    - steps: [{tool_calls: [{name: add, arguments: {a: 2, b: 3}}]}]
    - steps: [{error: {status: 500, message: On fire.}}]
- match: cut
  turns: [{steps: [{text: It was a dark and}, {cut: true}]}]
- match: talk
  turns: [{steps: [{delay: 0.02}, {text: one two three four five six seven eight nine ten eleven twelve}]}]
- match: nap
  turns: [{steps: [{tool_calls: [{name: slow, arguments: {name: it, seconds: 1.5}}]}]}]
- match: hello
  turns: [{steps: [{tool_calls: [{name: final_answer, arguments: {answer: Hello!}}]}]}]
"""


@pytest.mark.parametrize("fault", ["break", "cut"])
async def test_after_a_failure_the_next_turn_works(fault: str, tmp_path: Path, requests: Requests) -> None:
    async with theatre(calling(), FAULTS, tmp_path) as stage:
        failed = await stage.play(f"{fault} it", session_id="a")
        assert isinstance(failed.terminal, RunFailed)
        assert failed.all(StepFinished)[-1].error
        requests.clear()
        assert (await stage.play("hello", session_id="a")).answer == "Hello!"
    text = told(requests[0])
    assert text.count("This task was broken off here") == 1
    assert ("Observation:\n5" in text) == (fault == "break")


@pytest.mark.parametrize("question", ["talk", "nap"])
async def test_after_a_stop_the_next_turn_works(question: str, tmp_path: Path, requests: Requests) -> None:
    async with theatre(calling(), FAULTS, tmp_path) as stage:
        stopped = await stage.play_until(
            lambda e: isinstance(e, ReasoningDelta) or type(e).__name__ == "ToolReady",
            question=question,
            session_id="a",
        )
        assert isinstance(stopped.terminal, RunCancelled)
        requests.clear()
        assert (await stage.play("hello", session_id="a")).answer == "Hello!"
    assert told(requests[0]).count("This task was broken off here") == 1
    assert "Calling tools" not in told(requests[0])


def test_an_agent_that_is_still_at_work_is_left_alone() -> None:
    conversation = Conversation(calling()(Stage("http://127.0.0.1:1/v1", "key")), [Message(role="user", content="hi")])
    old = conversation.agent()
    conversation.abandon()
    old.memory.steps.append("what a late thread has done")
    new = conversation.agent()
    assert new is not old and new is conversation.agent()
    assert messages_of(new.memory.steps) == [
        ("user", "New task:\nhi"),
        ("tool-response", f"Observation:\n{BROKEN_OFF}"),
    ]


async def test_variables_outlive_a_thread_that_could_not_be_stopped(tmp_path: Path) -> None:
    script = """
- match: nap
  turns: [{steps: [{text: "<code>\\nkept = 7\\ndef more():\\n    return 1\\nslow('it', 1.5)\\n</code>"}]}]
- match: recall
  turns:
    - steps: [{text: "<code>\\nprint('heard')\\nfinal_answer(kept)\\n</code>"}]
"""
    async with theatre(coding(), script, tmp_path) as stage:
        stopped = await stage.play_until(
            lambda e: isinstance(e, ToolStarted) and e.name == "slow", question="nap", session_id="a"
        )
        assert isinstance(stopped.terminal, RunCancelled)
        run = await stage.play("recall", session_id="a")
    assert run.answer == 7
    assert run.call("python_interpreter").output == "heard\n"


class Container(PythonExecutor):
    """An executor that holds something outside of this process."""

    def __init__(self) -> None:
        self.cleaned: list[str] = []

    def __deepcopy__(self, memo: Any) -> "Container":
        fresh = Container()
        fresh.cleaned = self.cleaned
        return fresh

    def send_tools(self, tools: dict[str, Any]) -> None: ...

    def send_variables(self, variables: dict[str, Any]) -> None: ...

    def __call__(self, code_action: str) -> CodeOutput:
        return CodeOutput(output="ok", logs="", is_final_answer=True)

    def cleanup(self) -> None:
        self.cleaned.append("cleaned")


@pytest.mark.parametrize("key", ["", "k"])
async def test_what_an_executor_holds_is_given_back(key: str) -> None:
    container = Container()
    async with Understudy(parse_scripts("- steps: [{text: '<code>x</code>'}]\n")) as understudy:
        made = coding(executor=container)(Stage(understudy.base_url, understudy.key))
        source = SmolagentsSource(made)
        turn = Turn(messages=[Message(role="user", content="hello")], context=FakeContext(), memory_key=key)
        async for _ in source.run(turn):
            pass
        assert container.cleaned == ([] if key else ["cleaned"])
        await source.rest(key)
    assert container.cleaned == ["cleaned"]


def test_an_executor_that_cannot_be_copied_is_refused_with_the_way_out() -> None:
    class Stubborn(Container):
        def __deepcopy__(self, memo: Any) -> "Container":
            raise TypeError("cannot")

    agent = coding(executor=Stubborn())(Stage("http://127.0.0.1:1/v1", "key"))
    with pytest.raises(SetupError, match="__deepcopy__"):
        copy_of(agent)


async def test_without_a_key_nothing_is_kept() -> None:
    async with Understudy(parse_scripts(TWO_TURNS)) as understudy:
        source = SmolagentsSource(calling()(Stage(understudy.base_url, understudy.key)))
        for _ in range(2):
            items = [item async for item in source.run(new_turn("hello"))]
            assert isinstance(items[-1], RunFinished)
        assert source._conversations == {}  # pyright: ignore[reportPrivateUsage]


async def test_what_is_forgotten_is_gone() -> None:
    async with Understudy(parse_scripts(TWO_TURNS)) as understudy:
        source = SmolagentsSource(calling()(Stage(understudy.base_url, understudy.key)))
        turn = Turn(messages=[Message(role="user", content="hello")], context=FakeContext(), memory_key="k")
        async for _ in source.run(turn):
            pass
        kept = source._conversations  # pyright: ignore[reportPrivateUsage]
        assert list(kept) == ["k"]
        await source.forget("k")
        await source.forget("k")
        assert kept == {}
