"""smolagents: turns change a copy, with its own executor, and not the user's agent."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from smolagents import ToolCallingAgent
from smolagents.local_python_executor import CodeOutput, PythonExecutor

from limelight.errors import SetupError
from limelight.events import RunFinished
from limelight.messages import Message
from limelight.sources.base import Turn
from limelight.sources.smolagents import SmolagentsSource
from limelight.sources.smolagents.conversation import copy_agent
from limelight.understudy.scripts import parse_scripts
from limelight.understudy.server import Understudy
from tests.sources.fake_turn import FakeContext
from tests.sources.live_turn import ModelEndpoint, serve_agent
from tests.sources.smolagents.smolagents_scenarios import (
    CODE,
    SUB_AGENT,
    TOOLS,
    TWO_TURNS,
    calling,
    coding,
    leading,
    model_at,
)


def snapshot(agent: Any) -> dict[str, Any]:
    """The attributes of an agent that a run may change."""
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
async def test_turns_do_not_change_the_users_agent(
    make: Callable[[ModelEndpoint], Any], script: str, tmp_path: Path
) -> None:
    made: list[Any] = []

    def keep(endpoint: ModelEndpoint) -> object:
        made.append(make(endpoint))
        return made[0]

    async with serve_agent(keep, script, tmp_path) as server:
        before = snapshot(made[0])
        run = await server.run(
            messages=[
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "go"},
            ]
        )
        assert isinstance(run.terminal, RunFinished)
        assert snapshot(made[0]) == before


def test_copy_shares_only_tools_and_model() -> None:
    agent: Any = leading(coding, calling)(ModelEndpoint("http://127.0.0.1:1/v1", "key"))
    agent.state["known"] = 1
    agent.notes = ["mine"]
    copied = copy_agent(agent)
    assert copied.model is agent.model and copied.tools == agent.tools and copied.tools is not agent.tools
    assert copied.managed_agents["helper"] is not agent.managed_agents["helper"]
    assert copied.state == {"known": 1} and copied.state is not agent.state
    assert copied.notes == ["mine"] and copied.notes is not agent.notes
    assert copied.memory is not agent.memory and copied.python_executor is not agent.python_executor
    updates = [callback for found in copied.step_callbacks._callbacks.values() for callback in found]
    assert [update.__self__ for update in updates] == [copied.monitor]


async def test_callbacks_and_subclass_attributes_belong_to_the_copy(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    class Counting(ToolCallingAgent):
        rounds = 0

        def run(self, *args: Any, **kwargs: Any) -> Any:
            self.rounds += 1
            return super().run(*args, **kwargs)

    def note(step: Any, agent: Any) -> None:
        seen.append((agent.rounds, step.step_number))

    made: list[Any] = []

    def make(endpoint: ModelEndpoint) -> object:
        made.append(Counting(tools=TOOLS, model=model_at(endpoint), step_callbacks=[note]))
        return made[0]

    async with serve_agent(make, TWO_TURNS, tmp_path) as server:
        await server.run("hello", session_id="a")
        await server.run("hello", session_id="a")
        await server.run("hello", session_id="b")
    assert seen == [(1, 1), (2, 1), (1, 1)]
    assert made[0].rounds == 0


class Container(PythonExecutor):
    """An executor with a resource outside of this process."""

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
async def test_rest_cleans_up_the_executor(key: str) -> None:
    container = Container()
    async with Understudy(parse_scripts("- steps: [{text: '<code>x</code>'}]\n")) as understudy:
        made = coding(executor=container)(ModelEndpoint(understudy.base_url, understudy.key))
        source = SmolagentsSource(made)
        turn = Turn(messages=[Message(role="user", content="hello")], context=FakeContext(), memory_key=key)
        async for _ in source.run(turn):
            pass
        assert container.cleaned == ([] if key else ["cleaned"])
        await source.unload(key)
    assert container.cleaned == ["cleaned"]


def test_executor_that_cannot_be_copied_is_an_error_with_the_fix() -> None:
    class Stubborn(Container):
        def __deepcopy__(self, memo: Any) -> "Container":
            raise TypeError("cannot")

    agent = coding(executor=Stubborn())(ModelEndpoint("http://127.0.0.1:1/v1", "key"))
    with pytest.raises(SetupError, match="__deepcopy__"):
        copy_agent(agent)
