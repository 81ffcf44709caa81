"""The client of the pipe: certificates for https, the server's key, and a server below a path."""

import asyncio
import json
import ssl
import threading
from pathlib import Path
from typing import Any

import certifi
import httpx
import pytest

from openwebui.parts.server_client import join_url
from tests.openwebui.chat import Chat, Output
from tests.openwebui.frame_server import FrameServer
from tests.openwebui.function_rules import Json, WebUI, pipe_module
from tests.openwebui.test_downloads import LONG, painter, reader
from tests.support import agents
from tests.support.server import serving
from tests.support.wait import DEADLINE
from tests.system.processes.server_process import free_port

pytestmark = pytest.mark.asyncio(loop_scope="module")

END = "-----END CERTIFICATE-----\n"
DEFAULT_MODELS = [{"id": "deep_agent_pipe.default", "name": "Deep Agent Pipe"}]
DONE = '{"type":"done"}'
QUESTION: list[Json] = [{"role": "user", "content": "hi"}]
PUBLIC_URL = "https://www.example.org/limelight"


@pytest.fixture(autouse=True)
def no_cached_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    pipe_module().load_certificates.cache_clear()


@pytest.fixture
def one_certificate(tmp_path: Path) -> Path:
    path = tmp_path / "ca.pem"
    path.write_text(Path(certifi.where()).read_text(encoding="utf-8").partition(END)[0] + END, encoding="utf-8")
    return path


async def test_certificates_are_loaded_once_and_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []
    real = httpx.create_ssl_context

    def load(**options: Any) -> ssl.SSLContext:
        threads.append(threading.current_thread())
        return real(**options)

    monkeypatch.setattr(httpx, "create_ssl_context", load)
    first, second = [await pipe_module().ssl_verification("https://agents.example.org") for _ in range(2)]
    assert first is second
    assert len(threads) == 1 and threads[0] is not threading.main_thread()


async def test_certificates_are_read_from_the_file_in_the_environment(
    one_certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    default = await pipe_module().ssl_verification("https://agents.example.org")
    assert len(default.get_ca_certs()) > 1
    monkeypatch.setenv("SSL_CERT_FILE", str(one_certificate))
    assert len((await pipe_module().ssl_verification("https://agents.example.org")).get_ca_certs()) == 1


async def test_all_clients_share_the_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    verify: list[Any] = []
    real = httpx.AsyncClient

    def create(**options: Any) -> httpx.AsyncClient:
        verify.append(options["verify"])
        return real(**options)

    monkeypatch.setattr(httpx, "AsyncClient", create)
    monkeypatch.setattr(pipe_module(), "CONNECT_SECONDS", 0)
    chat = Chat(f"https://127.0.0.1:{free_port()}")
    output = await asyncio.wait_for(chat.send("hi"), DEADLINE)
    await chat.webui.models()
    assert "cannot be reached" in output.errors[0]
    assert len(verify) == 2 and verify[0] is verify[1] and isinstance(verify[0], ssl.SSLContext)


async def test_missing_certificate_file_is_an_error_that_names_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "gone.pem"))
    output = await Chat("https://agents.example.org").send("hi")
    assert "SSL_CERT_FILE" in output.errors[0]


async def test_plain_http_loads_no_certificates(server: FrameServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssl, "create_default_context", None)
    server.bodies["/agents"] = b'{"agents": [{"name": "a", "default": true}]}'
    assert await WebUI(DEEP_AGENT_URL=server.url).models() == DEFAULT_MODELS
    assert [request.route for request in server.requests] == ["GET /agents"]


async def test_key_with_a_pasted_line_break_is_sent_without_it(server: FrameServer) -> None:
    server.set_payloads(DONE)
    assert (await Chat(server.url, API_KEY="sesame\n").send("hi")).final_status == ("Complete", True)
    assert server.stream_requests[0].headers["authorization"] == "Bearer sesame"


@pytest.mark.parametrize("key", ["ses\name", "sesäme", "“sesame”", "ses\x00ame"])
async def test_invalid_key_is_an_error_that_does_not_contain_the_key(server: FrameServer, key: str) -> None:
    chat = Chat(server.url, API_KEY=key)
    output = await chat.send("hi")
    assert "valve API_KEY" in output.errors[0]
    assert output.final_status[0].startswith("Failed: ") and output.final_status[1]
    for text in (repr(output.chunks), json.dumps([output.chunks, output.events], ensure_ascii=False)):
        assert "ses" not in text and repr(key)[1:-1] not in text
    reply = await chat.call(QUESTION, Output(), stream=False, metadata={})
    assert isinstance(reply, str)
    assert "valve API_KEY" in reply and "ses" not in reply
    assert await chat.webui.models() == DEFAULT_MODELS
    assert server.requests == []


async def test_error_of_httpx_about_a_header_is_not_shown(server: FrameServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its text contains the header, and so the key."""

    def unchecked(*_: object) -> dict[str, str]:
        return {"Authorization": "Bearer ses\name"}

    monkeypatch.setattr(pipe_module(), "request_headers", unchecked)
    chat = Chat(server.url)
    output = await chat.send("hi")
    assert "valve" in output.errors[0]
    assert "ses" not in repr([output.chunks, output.events])
    assert await chat.webui.models() == DEFAULT_MODELS


@pytest.mark.parametrize(
    ("url", "path", "joined"),
    [
        ("http://h:8000", "/runs/r", "http://h:8000/runs/r"),
        ("http://h:8000", "/limelight/runs/r", "http://h:8000/limelight/runs/r"),
        ("https://h/limelight", "/limelight/runs/r?raw=1", "https://h/limelight/runs/r?raw=1"),
        ("https://h/limelight", "/runs/r", "https://h/limelight/runs/r"),
        ("https://h/lime", "/limelight/runs/r", "https://h/lime/limelight/runs/r"),
        ("", "/limelight/runs/r", "/limelight/runs/r"),
    ],
)
async def test_join_url_contains_the_root_path_once(url: str, path: str, joined: str) -> None:
    assert join_url(url, path) == joined


async def chat_below_path(agent: Any, data: Path, *, through_path: bool) -> Output:
    """The output of a server that knows its root path, called with the path or directly."""
    settings: dict[str, Any] = {"server__root_path": "/limelight", "auth__api_key": "sesame"}
    async with serving(agent, data=data, **settings) as served:
        url = served.url if through_path else served.url.removesuffix("/limelight")
        return await Chat(url, API_KEY="sesame", PUBLIC_URL=PUBLIC_URL).send("go")


@pytest.mark.parametrize("through_path", [True, False], ids=["with the path", "past the proxy"])
async def test_links_of_a_server_below_a_path_are_found(tmp_path: Path, through_path: bool) -> None:
    output = await chat_below_path(reader, tmp_path / "a", through_path=through_path)
    assert output.rows == {"read": LONG}
    output = await chat_below_path(painter, tmp_path / "b", through_path=through_path)
    assert output.items_of_type("function_call_output")[0]["files"][0]["url"].startswith("data:image/png")
    output = await chat_below_path(agents.big, tmp_path / "c", through_path=through_path)
    assert f"the whole is at {PUBLIC_URL}/runs/run_" in output.rows["dump"]
