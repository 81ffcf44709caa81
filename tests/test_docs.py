"""The documents say what the code does: each list in them is held against the code, in both directions.

A route, event, field, frame, setting, option or error code that is not documented fails here, and so does a document
that names one which does not exist. Snippets run, examples parse, links lead somewhere.
"""

import asyncio
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any, get_args

import httpx
import msgspec
import pytest
import typer.main
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.routing import Match

from limelight import __version__
from limelight.cli import app as cli
from limelight.cli.openwebui import Display
from limelight.config import Settings, all_settings, load_settings
from limelight.dialects.typed import TypedDialect
from limelight.errors import RunError, SetupError
from limelight.events import (
    EVENT_TYPES,
    AnyEvent,
    Attachment,
    Event,
    FinalAnswer,
    Record,
    Todo,
    ToolReady,
    ToolStarted,
    kind_of,
)
from limelight.registry import find
from limelight.server.app import create_app
from limelight.server.docs_page import all_errors, docs_page
from limelight.server.endpoint import Endpoint
from limelight.server.routes import ENDPOINTS
from limelight.sources.base import Feature
from limelight.targets import load_agent
from openwebui.parts.valves import UserValves, Valves
from tests.markdown import blocks, codes, rows, sections, without_code

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
UNLISTED_ROUTES = {"GET /", "GET /docs", "GET /openapi.json"}
"""Routes that are no endpoints: they are about the endpoints."""


def read(name: str) -> str:
    return (ROOT / name).read_text()


def by_name(path: Path) -> str:
    return str(path.relative_to(ROOT))


# HTTP


def keys_of(struct: type) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(struct)}


def endpoint_name(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.shown_path}"


def test_every_route_has_a_section_and_every_section_a_route() -> None:
    documented = {name for name in sections(read("docs/http.md"), 3) if "/" in name}
    assert documented == {endpoint_name(endpoint) for endpoint in ENDPOINTS} | UNLISTED_ROUTES


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=endpoint_name)
def test_a_route_is_documented_whole(endpoint: Endpoint) -> None:
    text = sections(read("docs/http.md"), 3)[endpoint_name(endpoint)]
    query = re.search(r"Query: (.*?)[.;]\s", text + " ", flags=re.DOTALL)
    named = {code for code in codes(query[1]) if code.isidentifier()} if query else set[str]()
    assert {param.name for param in endpoint.query} <= named | {"next"}
    assert named <= {param.name for param in endpoint.query} | {"next"}
    errors = re.search(r"^Errors: (.*)\Z", text.split("\n## ")[0].strip(), flags=re.MULTILINE | re.DOTALL)
    listed = codes(errors[1]) if errors else set[str]()
    assert listed == {error.code for error in endpoint.errors}


def test_bodies_are_documented_key_by_key() -> None:
    texts = sections(read("docs/http.md"), 3)
    for endpoint in ENDPOINTS:
        table = {next(iter(codes(row[0]))) for row in rows(texts[endpoint_name(endpoint)])}
        fields = keys_of(endpoint.body) if endpoint.body is not None else set[str]()
        if table:
            assert table == fields, endpoint_name(endpoint)
        elif endpoint.path != "/chat":  # which refers to the route before it
            assert fields <= codes(texts[endpoint_name(endpoint)]), endpoint_name(endpoint)


def test_answers_in_the_document_have_the_keys_of_the_code() -> None:
    texts = sections(read("docs/http.md"), 3)
    for endpoint in ENDPOINTS:
        for example in blocks(texts[endpoint_name(endpoint)], "json"):
            assert isinstance(endpoint.reply, type)
            msgspec.convert(json.loads(example), endpoint.reply)
            assert set(json.loads(example)) == keys_of(endpoint.reply)


def test_the_page_names_every_route_and_every_error() -> None:
    page = docs_page(ENDPOINTS)
    for endpoint in ENDPOINTS:
        assert f"<b>{endpoint.method}</b><code>{endpoint.shown_path}</code>" in page
    for error in all_errors():
        assert (f'id="error-{error.code}"' in page) == (not issubclass(error, SetupError))
    for target in re.findall(r'href="#([^"]+)"', page):
        assert f'id="{target}"' in page


# Events


def test_every_event_has_a_section_and_every_section_an_event() -> None:
    assert set(sections(read("docs/events.md"), 3)) == {kind_of(event) for event in EVENT_TYPES}


@pytest.mark.parametrize("event", EVENT_TYPES, ids=kind_of)
def test_an_event_is_documented_with_all_fields_and_defaults(event: type[Event]) -> None:
    table = {next(iter(codes(row[0]))): row[2] for row in rows(sections(read("docs/events.md"), 3)[kind_of(event)])}
    expected = {
        field.name: "required" if field.required else f"`{json.dumps(msgspec.to_builtins(field.default))}`"
        for field in msgspec.structs.fields(event)
        if field.name != "agent_id"
    }
    assert table == expected


def test_examples_of_records_are_records() -> None:
    text = read("docs/protocols/records.md")
    for line in re.findall(r"^data: (.*)$", text, flags=re.MULTILINE):
        assert msgspec.json.encode(msgspec.json.decode(line, type=Record)).decode() == line
    assert {next(iter(codes(row[0]))) for row in rows(text)} == set(Record.__struct_fields__)
    assert [json.loads(example) for example in blocks(text, "json")] == [{"gap": {"from": 1, "to": 113}}]


# The typed format

FULL: dict[str, Any] = {
    "agent_id": "a",
    "attachments": (Attachment(media_type="text/plain"),),
    "items": (Todo("x"),),
    "decisions": ("approve",),
    "sources": ("s",),
    "args": {"x": 1},
    "stream": "stderr",
    "decision": "edit",
    "enable_streaming": False,
}
"""Values that are not the defaults, for fields whose type does not say enough."""


def sample(event: type[Event], *, full: bool) -> AnyEvent:
    """An event with all its fields, or with those only that it must have."""
    by_type: dict[Any, Any] = {bool: True, int: 7, int | None: 7}
    fields = [field for field in msgspec.structs.fields(event) if full or field.required]
    values = {f.name: FULL.get(f.name, by_type.get(f.type, "x")) for f in fields}
    return event(**values)  # pyright: ignore[reportReturnType]


def typed_frames() -> dict[str, list[set[str]]]:
    """Every type of frame, with the sets of keys in which it occurs."""
    found: dict[str, list[set[str]]] = {}

    def take(payload: bytes) -> None:
        frame = json.loads(payload)
        found.setdefault(frame["type"], []).append(set(frame.get("data", {})))

    for full in (False, True):
        dialect = TypedDialect()
        events = [sample(event, full=full) for event in EVENT_TYPES]
        cut: dict[str, Any] = {"truncated": True, "size": 7, "result_url": "/x"} if full else {}
        events += [
            FinalAnswer(content="never streamed", **cut),
            FinalAnswer(content={"a": 1}),
            ToolStarted(call_id="y", name="x"),
            ToolReady(call_id="y", args="whole", **cut),
        ]
        for seq, event in enumerate(events, start=1):
            for payload in dialect.feed(Record(seq, "run", 0, event)):
                take(payload)
        take(dialect.gap(1, 2))
    return found


def test_every_frame_has_a_section_and_every_section_a_frame() -> None:
    assert set(sections(read("docs/protocols/typed.md"), 3)) == set(typed_frames())


@pytest.mark.parametrize("type_", sorted(typed_frames()))
def test_a_frame_is_documented_key_by_key(type_: str) -> None:
    text, frames = sections(read("docs/protocols/typed.md"), 3)[type_], typed_frames()[type_]
    table = {next(iter(codes(row[0]))): row[1] == "always" for row in rows(text)}
    assert table == {key: all(key in frame for frame in frames) for key in set[str]().union(*frames)}
    (example,) = [json.loads(block) for block in blocks(text, "json")]
    assert example["type"] == type_
    assert {key for key, always in table.items() if always} <= set(example.get("data", {})) <= set(table)


@pytest.mark.parametrize("name", ["README.md", "docs/protocols/typed.md"])
def test_lines_of_the_wire_are_real(name: str) -> None:
    frames = typed_frames()
    lines = re.findall(r"^data: (.*)$", read(name), flags=re.MULTILINE)
    assert len(lines) == (10 if name == "README.md" else 1)
    for line in lines:
        frame = msgspec.json.decode(line)
        assert msgspec.json.encode(frame).decode() == line
        assert set(frame.get("data", {})) <= set[str]().union(*frames[frame["type"]])


# Settings and the command line


def test_every_setting_is_documented_and_every_documented_setting_exists() -> None:
    documented: set[tuple[str, ...]] = set()
    for heading, text in sections(read("docs/settings.md"), 2).items():
        if heading.startswith("["):
            documented |= {(heading.strip("[]"), *(cell.strip("`") for cell in row[:3])) for row in rows(text)}
    assert documented == {(s.section, s.key, s.env or "–", json.dumps(s.default)) for s in all_settings()}


def test_environment_variables_in_the_documents_exist() -> None:
    source = "".join(path.read_text() for path in [*(ROOT / "src").rglob("*.py"), ROOT / "Makefile"])
    real = set(re.findall(r"LIMELIGHT_[A-Z_]+", source))
    named = {name for path in DOCUMENTS for name in re.findall(r"LIMELIGHT_[A-Z_]+", path.read_text())}
    assert named <= real
    assert real <= set(re.findall(r"LIMELIGHT_[A-Z_]+", read("docs/settings.md")))


def commands_of(group: Any, prefix: str = "") -> dict[str, Any]:
    """Every command by its whole name, those of groups too: `openwebui install`."""
    found: dict[str, Any] = {}
    for name, command in group.commands.items():
        inner = hasattr(command, "commands")
        found |= commands_of(command, f"{prefix}{name} ") if inner else {f"{prefix}{name}": command}
    return found


def test_every_command_and_option_is_documented_and_every_documented_one_exists() -> None:
    commands = commands_of(typer.main.get_command(cli))
    tables = sections(read("docs/cli.md"), 2)
    tables["serve"] = sections(read("docs/settings.md"), 2)["limelight serve"]
    tables["understudy"] = read("docs/understudy.md")
    assert set(commands) == set(tables)
    for name, one in commands.items():
        real = {option for param in one.params for option in param.opts if option.startswith("-")}
        listed = {option for row in rows(tables[name]) for option in codes(row[0]) if option.startswith("-")}
        assert listed - {"--help"} == real - {"--help"}, name


@pytest.mark.parametrize(("table", "valves"), [("valve", Valves), ("user valve", UserValves)])
def test_every_valve_is_documented_with_its_default(table: str, valves: type[BaseModel]) -> None:
    text = sections(read("docs/openwebui.md"), 2)["Valves"]
    (found,) = re.findall(rf"^\| {table} \|.*\n(?:\|.*\n)+", text, flags=re.MULTILINE)
    documented = {(row[0].strip("`"), row[1].strip("`")) for row in rows(found)}
    assert documented == {(name, json.dumps(field.default)) for name, field in valves.model_fields.items()}


def test_every_display_is_documented() -> None:
    displays = rows(sections(read("docs/openwebui.md"), 2)["Displays"])
    assert [row[0].strip("`") for row in displays] == [*get_args(Display)]


def test_examples_of_configuration_load(tmp_path: Path) -> None:
    examples = [block for path in DOCUMENTS for block in blocks(path.read_text(), "toml")]
    assert examples
    for number, example in enumerate(examples):
        path = tmp_path / f"{number}.toml"
        path.write_text(example)
        assert load_settings(path, environ={}) != Settings()


# Errors


def test_every_error_is_documented_and_every_documented_error_exists() -> None:
    def status(error: type[Exception]) -> str:
        if issubclass(error, RunError):
            return "in a run"
        return "at start" if issubclass(error, SetupError) else str(error.status)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]

    table = [(row[0].strip("`"), row[1]) for row in rows(read("docs/errors.md"))]
    assert len(table) == len(set(table))
    assert set(table) == {(error.code, status(error)) for error in all_errors()}


# Parts, commands, versions, links


def test_the_readme_lists_the_parts_that_are_there() -> None:
    table = {row[0]: codes(row[1]) for row in rows(sections(read("README.md"), 2)["What works with what"])}
    assert table == {
        "sources": {*find("sources")},
        "formats": {*find("dialects")},
        "stores": {*find("stores")},
        "Open WebUI": {*get_args(Display)},
    }


def test_what_a_framework_cannot_show_is_what_its_source_declares() -> None:
    sources = {name: source for name, source in find("sources").items() if name != "function"}
    told = sections(read("docs/frameworks.md"), 2)["What is seen"]
    names = re.findall(r"\w+", told.strip().splitlines()[0])
    shown = {row[0].strip("`"): dict(zip(names, row[1:], strict=True)) for row in rows(told) if len(row) == 4}
    assert shown == {
        feature: {name: "no" if feature in source.LACKS else "yes" for name, source in sources.items()}
        for feature in get_args(Feature)
    }
    reasons = {(row[0], row[1].strip("`")): row[2] for row in rows(told) if len(row) == 3}
    assert reasons == {(name, what): why for name, source in sources.items() for what, why in source.LACKS.items()}


def test_make_targets_in_the_documents_exist_and_all_are_listed() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*## ", read("Makefile"), flags=re.MULTILINE))
    for path in DOCUMENTS:
        text = path.read_text()
        shell = "\n".join(blocks(text, "sh"))
        named = set(re.findall(r"`make ([a-z-]+)", text)) | set(re.findall(r"^make ([a-z-]+)", shell, re.MULTILINE))
        assert named <= targets, by_name(path)
    assert set(re.findall(r"`make ([a-z-]+)", read("CONTRIBUTING.md"))) == targets


def test_every_promise_names_tests_that_exist() -> None:
    promises = rows(sections(read("docs/architecture.md"), 2)["Promises"])
    assert len(promises) == 9
    for promise, tests in promises:
        assert codes(tests), promise
        for name in codes(tests):
            file, _, function = name.partition("::")
            assert f"def {function}(" in (ROOT / file).read_text() if function else (ROOT / file).is_file(), name


def test_versions_agree() -> None:
    assert tomllib.loads(read("pyproject.toml"))["project"]["version"] == __version__
    changes = sections(read("CHANGELOG.md"), 2)
    assert next(iter(changes)) == "[Unreleased]"
    newest = re.search(r"\d+\.\d+\.\d+", "".join(f"{heading}{text}" for heading, text in changes.items()))
    assert newest is not None
    assert newest[0] == __version__


@pytest.mark.parametrize("path", DOCUMENTS, ids=by_name)
def test_links_lead_somewhere(path: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code(path.read_text())):
        if link.startswith("https://"):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.is_file(), link
        if anchor:
            headings = re.findall(r"^#+ (.+)$", without_code(target.read_text()), flags=re.MULTILINE)
            assert anchor in {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


def test_every_document_is_in_the_index() -> None:
    index = read("docs/index.md")
    for path in DOCS.rglob("*.md"):
        name = str(path.relative_to(DOCS))
        assert name == "index.md" or f"({name})" in index, name


@pytest.mark.parametrize("path", DOCUMENTS, ids=by_name)
def test_no_document_knows_the_machine_it_was_written_on(path: Path) -> None:
    assert not re.search(r"/(work|tmp|home|root|Users)/", path.read_text())


# Snippets


def snippets(*names: str) -> list[Any]:
    found = [(name, number, code) for name in names for number, code in enumerate(blocks(read(name), "python"), 1)]
    return [pytest.param(code, id=f"{name}:{number}") for name, number, code in found]


@pytest.fixture
def clean_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading a file makes its folder importable; that ends with the test."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "modules", {**sys.modules})


@pytest.mark.usefixtures("clean_imports")
@pytest.mark.parametrize("code", snippets("README.md", "docs/your-own-agent.md"))
async def test_an_agent_of_the_documents_works(code: str, tmp_path: Path) -> None:
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
async def test_mounting_works(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMELIGHT_DATA", str(tmp_path / "data"))
    names: dict[str, Any] = {}
    exec(compile(code, "docs/operating.md", "exec"), names)
    app = names["app"]
    async with app.router.lifespan_context(app), client_of(app) as client:
        assert (await client.get("/limelight/ready")).json()["status"] == "ready"
        assert (await client.get("/limelight/docs")).status_code == 200
        body = {"messages": [{"role": "user", "content": "bees"}]}
        assert "bees" in (await client.post("/limelight/chat", json=body)).json()["message"]["content"]


def test_the_tool_of_the_document_works_outside_of_limelight_too() -> None:
    (block,) = blocks(read("docs/frameworks.md"), "python")
    names: dict[str, Any] = {}
    exec(block, names)
    assert names["delete_file"]("/tmp/x") == "/tmp/x is deleted"


def test_python_is_only_where_it_is_run() -> None:
    run = {
        "README.md",
        "docs/your-own-agent.md",
        "docs/frameworks.md",
        "docs/operating.md",
        "docs/client.md",
        "docs/understudy.md",
    }
    assert {by_name(path) for path in DOCUMENTS if blocks(path.read_text(), "python")} == run


def test_calls_with_curl_name_routes(tmp_path: Path) -> None:
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


def test_samples_differ_from_the_defaults() -> None:
    """Otherwise keys of frames would be missed."""
    for event in EVENT_TYPES:
        full = sample(event, full=True)
        for field in msgspec.structs.fields(event):
            assert getattr(full, field.name) != field.default, (kind_of(event), field.name)
