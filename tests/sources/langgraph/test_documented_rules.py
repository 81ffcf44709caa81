# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownParameterType=false, reportUnknownArgumentType=false, reportUntypedFunctionDecorator=false
"""What LangChain asks of those who use it, as docs/frameworks.md tells it: once it is not so any more, this fails."""

from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_model_call, wrap_tool_call
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from limelight.events import RunFailed, Usage
from tests.sources.langgraph.langgraph_scenarios import ONE_TOOL, add, model
from tests.sources.live_turn import Stage, theatre


@wrap_tool_call
def counted(request: Any, handler: Any) -> Any:
    return handler(request)


@wrap_model_call
def watched(request: Any, handler: Any) -> Any:
    return handler(request)


@wrap_tool_call
async def counted_async(request: Any, handler: Any) -> Any:
    return await handler(request)


@pytest.mark.parametrize(("middleware", "missing"), [(counted, "awrap_tool_call"), (watched, "awrap_model_call")])
async def test_a_middleware_around_tools_and_models_needs_an_async_version(
    middleware: Any, missing: str, tmp_path: Path
) -> None:
    def make(stage: Stage) -> Any:
        return create_agent(model(stage), [add], middleware=[middleware])

    async with theatre(make, ONE_TOOL, tmp_path) as stage:
        run = await stage.play()
    assert isinstance(run.terminal, RunFailed)
    assert run.terminal.message.startswith("NotImplementedError") and missing in run.terminal.message


async def test_an_async_middleware_around_tools_works(tmp_path: Path) -> None:
    def make(stage: Stage) -> Any:
        return create_agent(model(stage), [add], middleware=[counted_async])

    async with theatre(make, ONE_TOOL, tmp_path) as stage:
        run = await stage.play()
    assert run.call("add").result == "5" and run.answer == "All done."


async def test_usage_of_a_server_that_is_not_openais_has_to_be_asked_for(tmp_path: Path) -> None:
    def make(stage: Stage, **asked: Any) -> Any:
        address: dict[str, Any] = {"base_url": stage.base_url, "api_key": SecretStr(stage.key)}
        hung_up = {"Connection": "close"}  # LangChain keeps its clients beyond the end of a test
        return create_agent(ChatOpenAI(model="understudy", default_headers=hung_up, **address, **asked), [add])

    for asked, told in (({}, 0), ({"stream_usage": True}, 2)):
        async with theatre(lambda stage, asked=asked: make(stage, **asked), ONE_TOOL, tmp_path / str(told)) as stage:
            run = await stage.play()
        assert len(run.all(Usage)) == told
