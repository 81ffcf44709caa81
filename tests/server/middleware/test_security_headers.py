"""Security headers of every response, on every layer."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from limelight.server.middleware.security_headers import DOCUMENT_POLICY, HEADERS
from limelight.server.routes import ENDPOINTS
from limelight.server.web_page import POLICY
from tests.support import agents
from tests.support.server import asking, serving

OVERRIDABLE = {"content-security-policy", "cache-control"}
"""Headers that a route may set itself."""
FRIEND = "https://friend.example"


def has_security_headers(headers: Any) -> bool:
    assert set(HEADERS) <= set(headers)
    return all(headers[name] == HEADERS[name] for name in HEADERS.keys() - OVERRIDABLE)


@pytest.mark.requirement("security-headers")
@pytest.mark.parametrize("auth", [{}, {"auth__api_key": "secret"}], ids=["open", "refused"])
async def test_every_route_has_the_security_headers(tmp_path: Path, auth: dict[str, Any]) -> None:
    async with serving(agents.echo, data=tmp_path, **auth) as served:
        for endpoint in ENDPOINTS:
            path = endpoint.path.replace("{", "").replace("}", "").replace(":path", "")
            response = await served.http.request(endpoint.method, path)
            assert has_security_headers(response.headers), endpoint.path
            assert response.headers["cache-control"] in ("no-store", "no-cache, no-transform"), endpoint.path


@pytest.mark.requirement("files-are-downloads")
async def test_streams_files_and_documents_have_their_own_policies(tmp_path: Path) -> None:
    async with serving(agents.echo, agents.worker, data=tmp_path) as served:
        async with served.http.stream("POST", "/chat/stream", json=asking("hi", agent="worker")) as stream:
            assert has_security_headers(stream.headers)
            run_id = stream.headers["x-run-id"]
            await stream.aread()
        page, docs = await served.http.get("/"), await served.http.get("/docs")
        assert has_security_headers(page.headers) and page.headers["content-security-policy"] == POLICY
        assert has_security_headers(docs.headers) and docs.headers["content-security-policy"] == DOCUMENT_POLICY
        assert "style-src 'unsafe-inline'" in DOCUMENT_POLICY and "script-src" not in DOCUMENT_POLICY
        text = (await served.http.get(f"/runs/{run_id}/stream", params={"format": "records"})).text
        artifact_id = text.partition('"artifact_id":"')[2].partition('"')[0]
        file = await served.http.get(f"/artifacts/{artifact_id}")
        assert file.status_code == 200 and has_security_headers(file.headers)
        assert file.headers["content-security-policy"] == "sandbox"


async def test_refusals_of_every_layer_have_the_security_headers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(agents.echo, data=tmp_path, server__origins=[FRIEND]) as served:
        preflight = {"origin": FRIEND, "access-control-request-method": "POST"}
        assert has_security_headers((await served.http.options("/chat", headers=preflight)).headers)
        for path in ("/nowhere", "/assets/nothing.js"):
            assert has_security_headers((await served.http.get(path)).headers)
        with pytest.raises(InvalidStatus) as refused:
            async with connect(f"{served.url.replace('http', 'ws', 1)}/nowhere", proxy=None):
                pass
        assert has_security_headers(refused.value.response.headers)

        async def broken(*_: Any, **__: Any) -> None:
            raise RuntimeError("a defect")

        monkeypatch.setattr(served.runtime.store, "sessions", broken)
        crash = await served.http.get("/sessions")
        assert (crash.status_code, "defect" in crash.text) == (500, False)
        assert has_security_headers(crash.headers)


def test_security_headers_are_valid_header_values() -> None:
    httpx.Headers(dict(HEADERS))
    assert all(name == name.lower() and value.isascii() for name, value in HEADERS.items())
