"""The application: lifespan, mount, documents, probes."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette

from limelight import __version__
from limelight.config import load_settings
from limelight.errors import StoreUnavailable
from limelight.server.app import create_app
from tests.support import agents
from tests.support.server import Served, asking, offer, serving


def make_app(data: Path) -> Starlette:
    settings = load_settings(environ={}, overrides={("store", "data"): str(data)})
    return create_app(settings, [offer(agents.talker)])


@asynccontextmanager
async def client_of(app: Any) -> AsyncGenerator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as http:
        yield http


@pytest.mark.requirement("mounted")
async def test_mounted_application_answers_below_its_mount(tmp_path: Path) -> None:
    inner = make_app(tmp_path)
    outer = FastAPI()
    outer.mount("/agents-here", inner)
    async with client_of(outer) as http:
        answer = await http.post("/agents-here/chat", json=asking("hi"))
        assert answer.json()["message"]["content"] == "".join(agents.WORDS)
        assert (await http.get("/agents-here/health")).json() == {"status": "ok"}
        assert "<title>Limelight</title>" in (await http.get("/agents-here", follow_redirects=True)).text
    await inner.state.runtime.stop()


async def test_mounted_application_counts_refusals(tmp_path: Path) -> None:
    inner = make_app(tmp_path)
    outer = FastAPI()
    outer.mount("/agents-here", inner)
    async with client_of(outer) as http:
        refused = await http.post("/agents-here/chat", json={"messages": [{"role": "user"}] * 10_001})
        assert (refused.status_code, refused.json()["code"]) == (413, "too_many_messages")
        assert (
            'limelight_limit_hits_total{code="too_many_messages"} 1.0' in (await http.get("/agents-here/metrics")).text
        )
    await inner.state.runtime.stop()


async def test_mounted_application_reports_a_locked_store_without_its_path_to_probes(tmp_path: Path) -> None:
    async with serving(agents.talker, data=tmp_path), client_of(make_app(tmp_path)) as http:
        response = await http.get("/agents")
        assert (response.status_code, response.json()["code"]) == (503, "store_locked")
        assert str(tmp_path) in response.text
        stranger = await http.get("/ready")
        assert (stranger.status_code, stranger.json()["code"]) == (503, "store_locked")
        assert str(tmp_path) not in stranger.text


async def test_lifespan_starts_and_stops_the_runtime(tmp_path: Path) -> None:
    app = make_app(tmp_path)
    async with app.router.lifespan_context(app), client_of(app) as http:
        assert app.state.runtime.started
        assert (await http.post("/chat", json=asking("hi"))).status_code == 200
    assert not app.state.runtime.started


async def test_sessions_are_there_after_a_restart(tmp_path: Path) -> None:
    for turn in (1, 2):
        async with serving(agents.talker, data=tmp_path) as served:
            await served.http.post("/chat", json=asking("hi", session_id="s"))
            assert (await served.http.get("/sessions/s")).json()["turns"] == turn


async def test_agents_are_listed_with_version_and_model(tmp_path: Path) -> None:
    cast = [offer(agents.talker), offer(agents.echo, model="understudy")]
    async with serving(agents=cast, data=tmp_path) as served:
        listed = (await served.http.get("/agents")).json()
    assert listed["version"] == __version__
    assert [(agent["name"], agent["model"]) for agent in listed["agents"]] == [("talker", ""), ("echo", "understudy")]


async def test_probes_report_a_healthy_server(served: Served) -> None:
    assert (await served.http.get("/health")).json() == {"status": "ok"}
    ready = (await served.http.get("/ready")).json()
    assert ready["status"] == "ready"
    assert ready["checks"]["store"] == "ok"
    assert "talker" in ready["checks"]["agents"]


async def test_failing_store_makes_the_server_not_ready(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken() -> None:
        raise StoreUnavailable("the disk is full")

    monkeypatch.setattr(served.runtime.store, "ping", broken)
    response = await served.http.get("/ready")
    assert response.status_code == 503
    assert response.json() == {
        "status": "not ready",
        "checks": {"server": "ok", "store": "failed", "agents": response.json()["checks"]["agents"]},
    }


async def test_unknown_paths_and_methods_are_answered_with_problems(served: Served) -> None:
    assert (await served.problem("GET", "/nowhere"))["code"] == "not_found"
    assert (await served.problem("PUT", "/chat"))["code"] == "method_not_allowed"


async def test_docs_page_loads_nothing_and_names_every_path(served: Served) -> None:
    page = (await served.http.get("/docs")).text
    assert "<script" not in page
    assert "http://" not in page.replace("http://127.0.0.1:8000", "")
    assert "https://" not in page
    spec = (await served.http.get("/openapi.json")).json()
    for path, operations in spec["paths"].items():
        assert path in page
        for operation in operations.values():
            assert operation["summary"]
            assert operation["description"]
