"""A server that is unreachable or refuses a request: the chat shows how to fix it. Also the list of models."""

from pathlib import Path

import pytest
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from tests.openwebui.chat import Chat, Output
from tests.openwebui.frame_server import FrameServer
from tests.openwebui.function_rules import WebUI, pipe_module
from tests.support import agents
from tests.support.server import serving
from tests.system.processes.server_process import free_port

pytestmark = pytest.mark.asyncio(loop_scope="module")

DEFAULT = {"id": "deep_agent_pipe.default", "name": "Deep Agent Pipe"}


def assert_failed(output: Output, *words: str) -> None:
    """Check that there is one error with these words, no other content, and a final status."""
    assert [chunk for chunk in output.chunks if isinstance(chunk, str) or "error" not in chunk] == []
    assert len(output.errors) == 1
    assert all(word in output.errors[0] for word in words), output.errors
    status, done = output.final_status
    assert status.startswith("Failed: ") and done


async def test_each_agent_is_a_model(tmp_path: Path) -> None:
    async with serving(agents.talker, agents.worker, data=tmp_path) as served:
        models = await WebUI(DEEP_AGENT_URL=f"{served.url}/").models()
    assert models == [DEFAULT, {"id": "deep_agent_pipe.worker", "name": "Deep Agent Pipe · worker"}]


async def test_model_selects_the_agent(tmp_path: Path) -> None:
    async with serving(agents.talker, agents.echo, data=tmp_path) as served:
        assert (await Chat(served.url).send("hi")).text == "".join(agents.WORDS)
        assert (await Chat(served.url, model="echo").send("hi")).text.startswith("user:hi for ")
        assert_failed(await Chat(served.url, model="gone").send("hi"), "Limelight server says", "gone")


async def test_unreachable_server_has_one_model_that_shows_the_error() -> None:
    chat = Chat(f"http://127.0.0.1:{free_port()}", RECONNECT_SECONDS=0)
    assert await chat.webui.models() == [DEFAULT]
    assert_failed(await chat.send("hi"), chat.webui.valves["DEEP_AGENT_URL"], "cannot be reached", "DEEP_AGENT_URL")


async def test_refused_key_is_an_error_that_names_the_valve(tmp_path: Path) -> None:
    async with serving(agents.talker, data=tmp_path, auth__api_key="sesame") as served:
        chat = Chat(served.url, API_KEY="wrong")
        assert await chat.webui.models() == [DEFAULT]
        assert_failed(await chat.send("hi"), "valve API_KEY")
        assert (await Chat(served.url, API_KEY="sesame").send("hi")).text == "".join(agents.WORDS)


async def test_detail_of_a_refusal_is_shown(server: FrameServer) -> None:
    server.faults = [JSONResponse({"title": "Forbidden", "detail": "set LIMELIGHT_API_KEY"}, 403)]
    assert_failed(await Chat(server.url).send("hi"), "refuses this machine", "set LIMELIGHT_API_KEY")
    server.faults = [JSONResponse({"title": "Too many", "detail": "come back later"}, 429)]
    assert_failed(await Chat(server.url).send("hi"), "The Limelight server says: come back later")


async def test_other_program_at_the_address_has_only_the_default_model(server: FrameServer) -> None:
    server.bodies["/agents"] = b"<html>"
    assert await WebUI(DEEP_AGENT_URL=server.url).models() == [DEFAULT]


async def test_invalid_address_is_an_error_that_names_the_valve() -> None:
    for url in ("localhost:8000", "http://[::1", "", "ftp://example.org"):
        chat = Chat(url, RECONNECT_SECONDS=0)
        assert await chat.webui.models() == [DEFAULT], url
        assert_failed(await chat.send("hi"), "DEEP_AGENT_URL")


async def test_invalid_frames_are_skipped(server: FrameServer) -> None:
    """With an exception Open WebUI would discard the message."""
    server.set_payloads(
        '{"type":"token","data":{"content":"So far. ","agent_depth":0}}',
        '["no", "frame"]',
        '{"type":"token","data":"no object"}',
        "no JSON",
        '{"type":"tool_start","data":{"tool_id":"c","name":"look","agent_depth":0,"args":{}}}',
        '{"type":"answer","data":{"sources":5}}',
        '{"type":"done"}',
    )
    output = await Chat(server.url).send("hi")
    assert output.text == "So far. "
    assert output.rows == {"look": "Error: interrupted"}
    assert (output.errors, output.final_status) == ([], ("Complete", True))


PAGE = "<html><body><h1>Bad Gateway</h1>nginx</body></html>"


async def test_request_is_repeated_while_a_proxy_answers_502_or_503(
    server: FrameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipe_module(), "RETRY_DELAY", 0)
    server.set_payloads('{"type":"token","data":{"content":"hi","agent_depth":0}}', '{"type":"done"}')
    server.faults = [HTMLResponse(PAGE, 502), HTMLResponse(PAGE, 503)]
    output = await Chat(server.url).send("hi")
    assert (output.text, output.errors) == ("hi", [])


async def test_error_page_of_a_proxy_is_not_shown(server: FrameServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe_module(), "CONNECT_SECONDS", 0)
    server.faults = [HTMLResponse(PAGE, 502)]
    output = await Chat(server.url).send("hi")
    assert_failed(output, "cannot be reached (status 502)", "DEEP_AGENT_URL")
    assert "nginx" not in str([output.chunks, output.events])


@pytest.mark.parametrize(
    "response", [RedirectResponse("/login"), HTMLResponse("<html>hello"), Response(status_code=201)]
)
async def test_response_that_is_not_a_stream_is_an_error(server: FrameServer, response: Response) -> None:
    server.faults = [response]
    assert_failed(await Chat(server.url).send("hi"), "does not answer like a Limelight server", "DEEP_AGENT_URL")
    assert len(server.stream_requests) == 1
