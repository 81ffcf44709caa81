# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownParameterType=false, reportUnknownArgumentType=false, reportUntypedFunctionDecorator=false
"""Requirements of LangChain that docs/frameworks.md describes; these tests fail when LangChain changes them."""

from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_model_call, wrap_tool_call
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from limelight.events import RunFailed, Usage
from tests.sources.langgraph.langgraph_scenarios import ONE_TOOL, add, model
from tests.sources.live_turn import ModelEndpoint, run_agent


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
async def test_sync_middleware_around_tools_or_models_raises(middleware: Any, missing: str, tmp_path: Path) -> None:
    def make(endpoint: ModelEndpoint) -> Any:
        return create_agent(model(endpoint), [add], middleware=[middleware])

    run = await run_agent(make, ONE_TOOL, tmp_path)
    assert isinstance(run.terminal, RunFailed)
    assert run.terminal.message.startswith("NotImplementedError") and missing in run.terminal.message


async def test_async_middleware_around_tools_works(tmp_path: Path) -> None:
    def make(endpoint: ModelEndpoint) -> Any:
        return create_agent(model(endpoint), [add], middleware=[counted_async])

    run = await run_agent(make, ONE_TOOL, tmp_path)
    assert run.call("add").result == "5" and run.answer == "All done."


async def test_usage_of_another_server_needs_stream_usage(tmp_path: Path) -> None:
    def make(endpoint: ModelEndpoint, **asked: Any) -> Any:
        address: dict[str, Any] = {"base_url": endpoint.base_url, "api_key": SecretStr(endpoint.key)}
        hung_up = {"Connection": "close"}  # LangChain keeps its clients beyond the end of a test
        return create_agent(ChatOpenAI(model="understudy", default_headers=hung_up, **address, **asked), [add])

    for asked, expected in (({}, 0), ({"stream_usage": True}, 2)):
        run = await run_agent(lambda endpoint, asked=asked: make(endpoint, **asked), ONE_TOOL, tmp_path / str(expected))
        assert len(run.all(Usage)) == expected
