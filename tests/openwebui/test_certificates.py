"""https: whom the pipe trusts is read once, beside the event loop, from where the environment says."""

import asyncio
import ssl
import threading
from pathlib import Path
from typing import Any

import certifi
import httpx
import pytest

from tests.openwebui.chat import Chat
from tests.openwebui.function_rules import pipe_module
from tests.system.processes.server_process import free_port

END = "-----END CERTIFICATE-----\n"


@pytest.fixture(autouse=True)
def nothing_read_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    pipe_module().load_certificates.cache_clear()


@pytest.fixture
def one_certificate(tmp_path: Path) -> Path:
    path = tmp_path / "ca.pem"
    path.write_text(Path(certifi.where()).read_text(encoding="utf-8").partition(END)[0] + END, encoding="utf-8")
    return path


async def test_they_are_read_once_and_not_on_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    readers: list[threading.Thread] = []
    real = httpx.create_ssl_context

    def reading(**options: Any) -> ssl.SSLContext:
        readers.append(threading.current_thread())
        return real(**options)

    monkeypatch.setattr(httpx, "create_ssl_context", reading)
    first, second = [await pipe_module().ssl_verification("https://agents.example.org") for _ in range(2)]
    assert first is second
    assert len(readers) == 1 and readers[0] is not threading.main_thread()


async def test_the_environment_says_which(one_certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = await pipe_module().ssl_verification("https://agents.example.org")
    assert len(usual.get_ca_certs()) > 1
    monkeypatch.setenv("SSL_CERT_FILE", str(one_certificate))
    assert len((await pipe_module().ssl_verification("https://agents.example.org")).get_ca_certs()) == 1


async def test_every_client_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    real = httpx.AsyncClient

    def making(**options: Any) -> httpx.AsyncClient:
        given.append(options["verify"])
        return real(**options)

    monkeypatch.setattr(httpx, "AsyncClient", making)
    monkeypatch.setattr(pipe_module(), "CONNECT_SECONDS", 0)
    chat = Chat(f"https://127.0.0.1:{free_port()}")
    seen = await asyncio.wait_for(chat.say("hi"), 20)
    await chat.webui.models()
    assert "cannot be reached" in seen.errors[0]
    assert len(given) == 2 and given[0] is given[1] and isinstance(given[0], ssl.SSLContext)


async def test_a_file_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "gone.pem"))
    seen = await Chat("https://agents.example.org").say("hi")
    assert "SSL_CERT_FILE" in seen.errors[0]
