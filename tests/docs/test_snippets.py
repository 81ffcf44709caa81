"""Runs the snippets of the documents: agents, mounted servers, curl commands."""

import asyncio
import re
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Match

from limelight.agents.load import load_agent
from limelight.config import load_settings
from limelight.server.app import create_app
from limelight.understudy.scripts import parse_scripts
from limelight.understudy.server import Understudy
from tests.support.documents import DOCUMENTS, by_name, read
from tests.support.markdown import blocks, sections


def snippets(*names: str) -> list[Any]:
    found = [(name, number, code) for name in names for number, code in enumerate(blocks(read(name), "python"), 1)]
    return [pytest.param(code, id=f"{name}:{number}") for name, number, code in found]


@pytest.fixture
def clean_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore the import path after the test, to which loading a file adds its folder."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "modules", {**sys.modules})


@pytest.mark.usefixtures("clean_imports")
@pytest.mark.parametrize("code", snippets("README.md", "docs/your-own-agent.md"))
async def test_agent_of_the_documents_works(code: str, tmp_path: Path) -> None:
    path = tmp_path / "my_agent.py"
    path.write_text(code)
    settings = load_settings(environ={}, overrides={("store", "data"): str(tmp_path / "data")})
    app = create_app(settings, [load_agent(f"{path}:agent")])
    body = {"messages": [{"role": "user", "content": "How do bees dance?"}], "session_id": "s"}
    async with app.router.lifespan_context(app), client_of(app) as client:
        asked = asyncio.create_task(client.post("/chat", json=body))
        while not asked.done():
            await approve_what_is_open(client)
            await asyncio.sleep(0.01)
        answer = (await asked).json()
        assert answer.get("state") == "finished", answer
        assert answer["message"]["content"]
        assert [agent["description"] for agent in (await client.get("/agents")).json()["agents"]] != [""]


@pytest.mark.requirement("message-formats")
@pytest.mark.usefixtures("async_model_clients_are_closed")
@pytest.mark.parametrize("number", range(3))
async def test_function_that_converts_messages_works(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    code = blocks(sections(read("docs/your-own-source.md"), 2)["Convert messages"], "python")[number]
    (tmp_path / "my_agent.py").write_text(code)
    async with Understudy(parse_scripts("- steps: [{text: Bees dance.}]\n- steps: [{text: They do.}]\n")) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", model.key)
        settings = load_settings(environ={}, overrides={("store", "data"): str(tmp_path / "data")})
        app = create_app(settings, [load_agent(f"{tmp_path / 'my_agent.py'}:agent")])
        async with app.router.lifespan_context(app), client_of(app) as client:
            for answer in ("Bees dance.", "They do."):  # the model counts the answers in the messages
                body = {"messages": [{"role": "user", "content": "And?"}], "session_id": "s"}
                response = (await client.post("/chat", json=body)).json()
                assert response.get("message", response) == {"role": "assistant", "content": answer}


async def approve_what_is_open(client: httpx.AsyncClient) -> None:
    session = await client.get("/sessions/s")
    if session.status_code == 200:
        run = (await client.get(f"/runs/{session.json()['run_id']}")).json()
        for approval in run["approvals"]:
            path = f"/runs/{run['run_id']}/approvals/{approval['approval_id']}"
            assert (await client.post(path, json={"decision": "approve"})).json() == {"state": "approve"}


def client_of(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost", timeout=10)


@pytest.mark.parametrize("code", snippets("docs/operating.md"))
async def test_mounted_application_of_the_document_works(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIMELIGHT_DATA", str(tmp_path / "data"))
    names: dict[str, Any] = {}
    exec(compile(code, "docs/operating.md", "exec"), names)
    app = names["app"]
    async with app.router.lifespan_context(app), client_of(app) as client:
        assert (await client.get("/limelight/ready")).json()["status"] == "ready"
        assert (await client.get("/limelight/docs")).status_code == 200
        body = {"messages": [{"role": "user", "content": "bees"}]}
        assert "bees" in (await client.post("/limelight/chat", json=body)).json()["message"]["content"]


def test_tool_of_the_document_works_outside_of_limelight() -> None:
    names: dict[str, Any] = {}
    for block in blocks(read("docs/frameworks.md"), "python"):
        exec(block, names)
    assert names["delete_file"]("/tmp/x") == "/tmp/x is deleted"


@pytest.mark.usefixtures("clean_imports")
async def test_factory_of_the_document_works(tmp_path: Path) -> None:
    (block,) = [code for code in blocks(read("docs/frameworks.md"), "python") if "make_agent" in code]
    (tmp_path / "bot.py").write_text(block)
    settings = load_settings(environ={}, overrides={("store", "data"): str(tmp_path / "data")})
    app = create_app(settings, [load_agent(f"{tmp_path / 'bot.py'}:make_agent")])
    body = {"messages": [{"role": "user", "content": "How are you?"}]}
    async with app.router.lifespan_context(app), client_of(app) as client:
        assert (await client.post("/chat", json=body)).json()["message"]["content"] == "The connection is open."


def test_documents_with_python_are_tested() -> None:
    run = {
        "README.md",
        "docs/your-own-agent.md",
        "docs/your-own-source.md",
        "docs/frameworks.md",
        "docs/operating.md",
        "docs/client.md",
        "docs/understudy.md",
    }
    assert {by_name(path) for path in DOCUMENTS if blocks(path.read_text(), "python")} == run


def test_curl_commands_name_existing_routes(tmp_path: Path) -> None:
    app = create_app(load_settings(environ={}, overrides={("store", "data"): str(tmp_path)}))
    for path in DOCUMENTS:
        for block in blocks(path.read_text(), "sh"):
            for call in re.findall(r"^curl (?:.*\\\n)*.*", block, flags=re.MULTILINE):
                url = re.search(r"http://127\.0\.0\.1:8000(/[^\s'\"?]*)", call)
                assert url is not None, call
                method = re.search(r"-X (\w+)", call)
                name = method[1] if method else "POST" if "-d " in call else "GET"
                assert is_route(app, name, url[1]), f"{by_name(path)}: {name} {url[1]}"


def is_route(app: Starlette, method: str, path: str) -> bool:
    scope = {"type": "http", "method": method, "path": path}
    return any(route.matches(scope)[0] is Match.FULL for route in app.routes)
