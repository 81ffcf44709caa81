# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
"""LangGraph: results of tools in every form that LangChain allows."""

import base64
import datetime
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.tools import InjectedToolCallId, tool
from langchain_core.documents import Document
from langchain_core.messages import ToolMessage
from langgraph.types import Command

from limelight.events import ArtifactMade, RunFailed, RunFinished, SourceCited
from tests.sources.langgraph.langgraph_scenarios import answering, model
from tests.sources.live_turn import FinishedRun, ModelEndpoint, run_agent, serve_agent

PNG = b"\x89PNG\r\n\x1a\n picture"
DOCUMENTS = [Document("All about bees.", metadata={"title": "Bees", "source": "https://bees.example/"}), Document("x")]


class Odd:
    def __str__(self) -> str:
        return "an odd thing"


@tool
def plain_result(kind: str) -> Any:
    """Return something."""
    return {
        "none": None,
        "dict": {"a": [1, 2.5, True, None]},
        "strange": {"at": datetime.date(2026, 1, 2), "what": Odd()},
        "list": [1, "two"],
        "number": 7,
        "empty": "",
        "blocks": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}],
    }[kind]


@tool
def message_result(call_id: Annotated[str, InjectedToolCallId]) -> ToolMessage:
    """Return a message."""
    return ToolMessage("as a message", tool_call_id=call_id)


@tool
def command_result(call_id: Annotated[str, InjectedToolCallId]) -> Command[str]:
    """Return a command."""
    return Command(update={"messages": [ToolMessage("by command", tool_call_id=call_id)]})


@tool
def failed_result(call_id: Annotated[str, InjectedToolCallId]) -> ToolMessage:
    """Return a failure."""
    return ToolMessage("no luck", tool_call_id=call_id, status="error")


@tool
def picture_result() -> list[dict[str, Any]]:
    """Return a picture among text."""
    picture = {"type": "image", "base64": base64.b64encode(PNG).decode(), "mime_type": "image/png"}
    return [{"type": "text", "text": "Here it is:"}, picture]


@tool(response_format="content_and_artifact")
def bytes_beside() -> tuple[str, bytes]:
    """Return bytes beside the text."""
    return "See the file.", PNG


@tool(response_format="content_and_artifact")
def documents_beside() -> tuple[str, list[Document]]:
    """Return documents beside the text."""
    return "Two were found.", DOCUMENTS


@tool
def bytes_result() -> bytes:
    """Return bytes."""
    return PNG


@tool(return_direct=True)
def last_word() -> str:
    """Return what is the answer."""
    return "That is all."


@tool
def broken_text() -> str:
    """Return half a character."""
    return "half \ud800 a character"


TOOLS = [
    plain_result,
    message_result,
    command_result,
    failed_result,
    picture_result,
    bytes_beside,
    documents_beside,
    bytes_result,
    last_word,
    broken_text,
]


def agent(endpoint: ModelEndpoint) -> Any:
    return create_agent(model(endpoint), TOOLS)


async def run_with_tool(tmp_path: Path, name: str, arguments: str = "{}") -> FinishedRun:
    script = answering(f"- steps: [{{tool_calls: [{{name: {name}, arguments: {arguments}}}]}}]")
    return await run_agent(agent, script, tmp_path)


@pytest.mark.parametrize(
    ("kind", "result"),
    [
        ("none", ""),
        ("dict", '{"a": [1, 2.5, true, null]}'),
        ("list", '[1, "two"]'),
        ("number", "7"),
        ("empty", ""),
        ("blocks", "one\ntwo"),
    ],
)
async def test_json_result_stays_json(tmp_path: Path, kind: str, result: str) -> None:
    run = await run_with_tool(tmp_path, "plain_result", f"{{kind: {kind}}}")
    assert isinstance(run.terminal, RunFinished)
    call = run.call("plain_result")
    assert (call.result, call.error) == (result, None)


async def test_result_that_is_not_json_becomes_text(tmp_path: Path) -> None:
    run = await run_with_tool(tmp_path, "plain_result", "{kind: strange}")
    assert isinstance(run.terminal, RunFinished)
    assert "2026" in str(run.call("plain_result").result)
    assert run.call("plain_result").error is None


@pytest.mark.parametrize(
    ("name", "result", "error"),
    [
        ("message_result", "as a message", None),
        ("command_result", "by command", None),
        ("failed_result", "Error: no luck", "no luck"),
    ],
)
async def test_messages_and_commands_become_their_content(
    tmp_path: Path, name: str, result: str, error: str | None
) -> None:
    run = await run_with_tool(tmp_path, name)
    assert isinstance(run.terminal, RunFinished)
    assert (run.call(name).result, run.call(name).error) == (result, error)


@pytest.mark.parametrize("name", ["picture_result", "bytes_beside"])
async def test_image_blocks_become_files(tmp_path: Path, name: str) -> None:
    run = await run_with_tool(tmp_path, name)
    assert isinstance(run.terminal, RunFinished)
    made = run.one(ArtifactMade)
    call = run.call(name)
    assert (made.media_type, made.size, made.call_id) == ("image/png", len(PNG), call.call_id)
    assert "base64" not in str(call.result)
    assert str(call.result).startswith(("Here it is:", "See the file."))


async def test_bytes_become_the_text_of_langchain(tmp_path: Path) -> None:
    run = await run_with_tool(tmp_path, "bytes_result")
    assert isinstance(run.terminal, RunFinished)
    assert "PNG" in str(run.call("bytes_result").result)


async def test_documents_become_sources(tmp_path: Path) -> None:
    run = await run_with_tool(tmp_path, "documents_beside")
    assert isinstance(run.terminal, RunFinished)
    assert run.call("documents_beside").result == "Two were found."
    first, second = run.all(SourceCited)
    assert (first.title, first.url, first.text) == ("Bees", "https://bees.example/", "All about bees.")
    assert (second.title, second.url) == ("Document", "")


async def test_result_of_a_returning_tool_is_the_answer(tmp_path: Path) -> None:
    run = await run_with_tool(tmp_path, "last_word")
    assert isinstance(run.terminal, RunFinished)
    assert run.answer == "That is all."
    assert run.text() == ""


async def test_lone_surrogate_in_a_result_is_shown_and_fails_the_next_request(tmp_path: Path) -> None:
    run = await run_with_tool(tmp_path, "broken_text")
    call = run.call("broken_text")
    assert (call.result, call.error) == ("half � a character", None)
    assert isinstance(run.terminal, RunFailed)
    assert "Unicode" in run.terminal.message or "surrogate" in run.terminal.message


async def test_lone_surrogate_in_a_text_is_replaced(tmp_path: Path) -> None:
    script = '- steps: [{text: "All \\ud800 done."}]'
    async with serve_agent(agent, script, tmp_path) as server:
        run = await server.run(session_id="a")
        assert isinstance(run.terminal, RunFinished | RunFailed)
        assert "\ud800" not in run.text()
        again = await server.run("go on", session_id="a")
        assert again.terminal
