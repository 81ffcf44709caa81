"""A server that is not there, or says no: the chat is told what to do, and keeps working."""

import ssl
from pathlib import Path

import pytest
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from tests.openwebui.chat import Chat, Seen
from tests.openwebui.frame_server import Stage
from tests.openwebui.function_rules import WebUI, pipe_module
from tests.support import agents
from tests.support.server import serving
from tests.system.processes.server_process import free_port

pytestmark = pytest.mark.asyncio(loop_scope="module")

DEFAULT = {"id": "deep_agent_pipe.default", "name": "Deep Agent Pipe"}


def failed_with(seen: Seen, *words: str) -> None:
    """One error, which says these things; nothing else in the bubble; and a line that has come to rest."""
    assert [chunk for chunk in seen.chunks if isinstance(chunk, str) or "error" not in chunk] == []
    assert len(seen.errors) == 1
    assert all(word in seen.errors[0] for word in words), seen.errors
    line, done = seen.end
    assert line.startswith("Failed: ") and done


async def test_every_agent_of_the_server_is_a_model(tmp_path: Path) -> None:
    async with serving(agents.talker, agents.worker, data=tmp_path) as served:
        models = await WebUI(DEEP_AGENT_URL=f"{served.url}/").models()
    assert models == [DEFAULT, {"id": "deep_agent_pipe.worker", "name": "Deep Agent Pipe · worker"}]


async def test_a_model_is_the_agent_that_works(tmp_path: Path) -> None:
    async with serving(agents.talker, agents.echo, data=tmp_path) as served:
        assert (await Chat(served.url).say("hi")).text == "".join(agents.WORDS)
        assert (await Chat(served.url, model="echo").say("hi")).text.startswith("user:hi for ")
        failed_with(await Chat(served.url, model="gone").say("hi"), "Limelight server says", "gone")


async def test_a_server_that_is_down_is_one_model_that_says_so() -> None:
    chat = Chat(f"http://127.0.0.1:{free_port()}", RECONNECT_SECONDS=0)
    assert await chat.webui.models() == [DEFAULT]
    failed_with(await chat.say("hi"), chat.webui.stored["DEEP_AGENT_URL"], "cannot be reached", "DEEP_AGENT_URL")


async def test_a_refused_key_is_advice(tmp_path: Path) -> None:
    async with serving(agents.talker, data=tmp_path, auth__api_key="sesame") as served:
        chat = Chat(served.url, API_KEY="wrong")
        assert await chat.webui.models() == [DEFAULT]
        failed_with(await chat.say("hi"), "valve API_KEY")
        assert (await Chat(served.url, API_KEY="sesame").say("hi")).text == "".join(agents.WORDS)


async def test_what_the_server_says_is_passed_on(stage: Stage) -> None:
    stage.faults = [JSONResponse({"title": "Forbidden", "detail": "set LIMELIGHT_API_KEY"}, 403)]
    failed_with(await Chat(stage.url).say("hi"), "refuses this machine", "set LIMELIGHT_API_KEY")
    stage.faults = [JSONResponse({"title": "Too many", "detail": "come back later"}, 429)]
    failed_with(await Chat(stage.url).say("hi"), "The Limelight server says: come back later")


async def test_another_program_at_the_address_is_no_riddle(stage: Stage) -> None:
    stage.bodies["/agents"] = b"<html>"
    assert await WebUI(DEEP_AGENT_URL=stage.url).models() == [DEFAULT]


async def test_an_address_that_is_none_is_an_error_like_others() -> None:
    for url in ("localhost:8000", "http://[::1", "", "ftp://example.org"):
        chat = Chat(url, RECONNECT_SECONDS=0)
        assert await chat.webui.models() == [DEFAULT], url
        failed_with(await chat.say("hi"), "DEEP_AGENT_URL")


async def test_plain_http_reads_no_certificates(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes long, and Open WebUI serves nobody meanwhile."""
    monkeypatch.setattr(ssl, "create_default_context", None)
    stage.bodies["/agents"] = b'{"agents": [{"name": "a", "default": true}]}'
    assert await WebUI(DEEP_AGENT_URL=stage.url).models() == [DEFAULT]
    assert [asked.line for asked in stage.asked] == ["GET /agents"]


async def test_a_frame_that_nobody_understands_does_not_take_the_rest_with_it(stage: Stage) -> None:
    """Open WebUI forgets everything that was shown when a pipe raises in the middle."""
    frames = [
        '{"type":"token","data":{"content":"So far. ","agent_depth":0}}',
        '["no", "frame"]',
        '{"type":"token","data":"no object"}',
        "no JSON",
        '{"type":"tool_start","data":{"tool_id":"c","name":"look","agent_depth":0,"args":{}}}',
        '{"type":"answer","data":{"sources":5}}',
        '{"type":"done"}',
    ]
    stage.play("".join(f"id: {n}\ndata: {frame}\n\n" for n, frame in enumerate(frames, 1)).encode())
    seen = await Chat(stage.url).say("hi")
    assert seen.text == "So far. "
    assert seen.rows == {"look": "Error: interrupted"}
    assert (seen.errors, seen.end) == ([], ("Complete", True))


PAGE = "<html><body><h1>Bad Gateway</h1>nginx</body></html>"


async def test_a_proxy_whose_server_is_starting_is_asked_again(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe_module(), "RETRY_DELAY", 0)
    stage.play(b'id: 1\ndata: {"type":"token","data":{"content":"hi","agent_depth":0}}\n\ndata: {"type":"done"}\n\n')
    stage.faults = [HTMLResponse(PAGE, 502), HTMLResponse(PAGE, 503)]
    seen = await Chat(stage.url).say("hi")
    assert (seen.text, seen.errors) == ("hi", [])


async def test_the_page_of_a_proxy_is_not_shown(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe_module(), "CONNECT_SECONDS", 0)
    stage.faults = [HTMLResponse(PAGE, 502)]
    seen = await Chat(stage.url).say("hi")
    failed_with(seen, "cannot be reached (status 502)", "DEEP_AGENT_URL")
    assert "nginx" not in str([seen.chunks, seen.events])


@pytest.mark.parametrize("answer", [RedirectResponse("/login"), HTMLResponse("<html>hello"), Response(status_code=201)])
async def test_a_server_that_is_no_limelight_is_said_to_be_none(stage: Stage, answer: Response) -> None:
    stage.faults = [answer]
    failed_with(await Chat(stage.url).say("hi"), "does not answer like a Limelight server", "DEEP_AGENT_URL")
    assert len(stage.streams) == 1
