"""A server without a key behind a proxy on the same machine."""

from pathlib import Path

import pytest

from tests.server.keyed_server import Headers, handshake
from tests.server.raw_connection import connected
from tests.support import agents
from tests.support.server import Served, serving

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
        assert await status(served, "GET /agents HTTP/1.0") == 403
        assert await status(served, "GET /agents HTTP/1.1") == 200
        assert await status(served, "GET /health HTTP/1.0") == 200


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


async def status(served: Served, line: str) -> int:
    """The status of the answer to a request line."""
    async with connected(served) as wire:
        wire.writer.write(f"{line}\r\nHost: 127.0.0.1\r\n\r\n".encode())
        return (await wire.answer())[0]
