"""A server without a key, and a proxy on its own machine that lets strangers in: they get nothing."""

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.server.keyed_server import Headers, handshake
from tests.support import agents
from tests.support.server import serving

PASSED_ON: list[Headers] = [
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


@pytest.mark.parametrize("passed_on", PASSED_ON, ids=str)
async def test_whoever_comes_through_a_proxy_needs_a_key(tmp_path: Path, passed_on: Headers) -> None:
    async with serving(agents.echo, data=tmp_path) as served:
        problem = await served.problem("GET", "/agents", headers=passed_on)
        assert (problem["status"], problem["code"]) == (403, "forbidden")
        assert "limelight keys create" in problem["detail"]
        assert await handshake(served, passed_on) == 403
        assert (await served.http.get("/health", headers=passed_on)).status_code == 200


async def test_nginx_without_settings_is_known_by_how_it_speaks(tmp_path: Path) -> None:
    async with serving(agents.echo, data=tmp_path) as served:
        host = urlsplit(served.url).netloc
        assert b" 403 " in await said(host, "GET /agents HTTP/1.0")
        assert b" 200 " in await said(host, "GET /agents HTTP/1.1")
        assert b" 200 " in await said(host, "GET /health HTTP/1.0")


async def test_whoever_insists_serves_those_too(tmp_path: Path) -> None:
    async with serving(agents.echo, data=tmp_path, auth__insecure_no_auth=True, server__root_path="/x") as served:
        for passed_on in PASSED_ON:
            assert (await served.http.get("/agents", headers=passed_on)).status_code == 200


async def test_with_a_key_a_proxy_changes_nothing(tmp_path: Path) -> None:
    async with serving(agents.echo, data=tmp_path, auth__api_key="sesame") as served:
        for passed_on in PASSED_ON:
            key = {"authorization": "Bearer sesame"}
            assert (await served.http.get("/agents", headers={**passed_on, **key})).status_code == 200
            assert (await served.http.get("/agents", headers=passed_on)).status_code == 401


async def test_a_path_for_a_proxy_needs_a_key_whoever_asks(tmp_path: Path) -> None:
    async with serving(agents.echo, data=tmp_path, server__root_path="/limelight") as served:
        assert (await served.http.get("/agents")).status_code == 403
        assert (await served.http.get("/health")).status_code == 200


async def said(host: str, line: str) -> bytes:
    """The first line of the answer to a request of one line."""
    name, _, port = host.partition(":")
    reader, writer = await asyncio.open_connection(name, int(port))
    writer.write(f"{line}\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    try:
        return (await asyncio.wait_for(reader.read(), 10)).partition(b"\r\n")[0]
    finally:
        writer.close()
