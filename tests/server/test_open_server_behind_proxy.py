"""A server without a key behind a proxy on the same machine."""

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.server.keyed_server import Headers, handshake
from tests.support import agents
from tests.support.server import serving

PROXY_HEADERS: list[Headers] = [
    {"x-forwarded-for": "192.0.2.7"},
    {"x-forwarded-for": "127.0.0.1"},
    {"x-forwarded-for": "unknown"},
    {"x-forwarded-for": ""},
    {"forwarded": "for=192.0.2.7"},
    {"x-real-ip": "192.0.2.7"},
    {"x-forwarded-proto": "https"},
    {"x-forwarded-host": "agents.example.org"},
    {"via": "1.1 proxy"},
]


@pytest.mark.requirement("open-server-local")
@pytest.mark.parametrize("proxy_headers", PROXY_HEADERS, ids=str)
async def test_open_server_refuses_proxied_requests(tmp_path: Path, proxy_headers: Headers) -> None:
    async with serving(agents.echo, data=tmp_path) as served:
        problem = await served.problem("GET", "/agents", headers=proxy_headers)
        assert (problem["status"], problem["code"]) == (403, "forbidden")
        assert "limelight keys create" in problem["detail"]
        assert await handshake(served, proxy_headers) == 403
        assert (await served.http.get("/health", headers=proxy_headers)).status_code == 200


async def test_open_server_refuses_http_1_0(tmp_path: Path) -> None:
    async with serving(agents.echo, data=tmp_path) as served:
        host = urlsplit(served.url).netloc
        assert b" 403 " in await status_line(host, "GET /agents HTTP/1.0")
        assert b" 200 " in await status_line(host, "GET /agents HTTP/1.1")
        assert b" 200 " in await status_line(host, "GET /health HTTP/1.0")


async def test_insecure_server_answers_proxied_requests(tmp_path: Path) -> None:
    async with serving(agents.echo, data=tmp_path, auth__insecure_no_auth=True, server__root_path="/x") as served:
        for proxy_headers in PROXY_HEADERS:
            assert (await served.http.get("/agents", headers=proxy_headers)).status_code == 200


async def test_server_with_a_key_treats_proxied_requests_as_others(tmp_path: Path) -> None:
    async with serving(agents.echo, data=tmp_path, auth__api_key="sesame") as served:
        for proxy_headers in PROXY_HEADERS:
            key = {"authorization": "Bearer sesame"}
            assert (await served.http.get("/agents", headers={**proxy_headers, **key})).status_code == 200
            assert (await served.http.get("/agents", headers=proxy_headers)).status_code == 401


async def test_open_server_with_a_root_path_refuses_all_requests(tmp_path: Path) -> None:
    async with serving(agents.echo, data=tmp_path, server__root_path="/limelight") as served:
        assert (await served.http.get("/agents")).status_code == 403
        assert (await served.http.get("/health")).status_code == 200


async def status_line(host: str, line: str) -> bytes:
    """The status line of the answer to a request line."""
    name, _, port = host.partition(":")
    reader, writer = await asyncio.open_connection(name, int(port))
    writer.write(f"{line}\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    try:
        return (await asyncio.wait_for(reader.read(), 10)).partition(b"\r\n")[0]
    finally:
        writer.close()
