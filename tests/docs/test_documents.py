"""The documents agree with the code: each list in them is compared with the code, in both directions.

A setting, option, valve or error code that is not documented fails here, and so does a document that names one which
does not exist. Examples parse, and links lead to existing targets. Other files test the wire and the snippets.
"""

import json
import re
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest
import typer.main
from pydantic import BaseModel

from limelight import __version__
from limelight.cli import app as cli
from limelight.cli.command_group import CommandGroup
from limelight.cli.openwebui import Display
from limelight.client.session_socket import QUEUE_SIZE
from limelight.config import Settings, all_settings, load_settings
from limelight.errors import RunError, SetupError, all_errors
from limelight.plugins import find
from limelight.runs.limits import MAX_QUEUED
from limelight.server import rate_limit, readiness
from limelight.server.process import uvicorn_protocols, uvicorn_server
from limelight.server.routes import chat, runs
from limelight.sources.base import Feature
from openwebui.parts.valves import UserValves, Valves
from tests.support.documents import DOCS, DOCUMENTS, ROOT, by_name, read
from tests.support.markdown import anchors, blocks, codes, rows, sections, without_code

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
    """Every command by its complete name, also those of groups: `openwebui install`."""
    found: dict[str, Any] = {}
    for name in group.commands:
        command = group.load(name) if isinstance(group, CommandGroup) else group.commands[name]
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


# Numbers

NUMBERS = [
    ("docs/http.md", "responds within three seconds after the body was read", chat.START_SECONDS, 3),
    (
        "docs/http.md",
        "responds when the run has ended, after two seconds at the latest",
        runs.STOP_SECONDS,
        2,
    ),
    ("docs/http.md", "`wait` (queue the request; at most five wait)", MAX_QUEUED, 5),
    ("docs/http.md", "The server tests the store at most every two seconds", readiness.CACHE_SECONDS, 2),
    ("docs/operating.md", "two seconds after the second signal", uvicorn_server.FAST_SHUTDOWN_SECONDS, 2),
    ("docs/operating.md", "25 seconds after the first (the grace time and 20)", uvicorn_server.SHUTDOWN_SECONDS, 20),
    ("docs/operating.md", "whose client accepts no data for two minutes", uvicorn_protocols.UNREAD_SECONDS, 120),
    ("docs/protocols/v2.md", "The server pings every 20 seconds", uvicorn_server.PING_SECONDS, 20),
    ("docs/protocols/v2.md", "after 60 seconds without a pong", uvicorn_server.PONG_SECONDS, 60),
    ("docs/protocols/v2.md", "A socket accepts 200 messages of any kind at once", rate_limit.MESSAGE_BURST, 200),
    ("docs/security.md", "A run accepts 20 of them at once", rate_limit.SIGNAL_BURST, 20),
    ("docs/client.md", "The client buffers up to 256 messages", QUEUE_SIZE, 256),
]
"""A document, words of it, the value in the code, and the value that the words state."""


@pytest.mark.requirement("stream-starts-early", "readiness-cached")
@pytest.mark.parametrize(("document", "words", "value", "stated"), NUMBERS, ids=[words for _, words, *_ in NUMBERS])
def test_numbers_in_the_documents_are_those_of_the_code(document: str, words: str, value: float, stated: float) -> None:
    assert words in " ".join(read(document).split())
    assert value == stated


# Parts, commands, versions, links


def test_readme_lists_the_existing_parts() -> None:
    table = {row[0]: codes(row[1]) for row in rows(sections(read("README.md"), 2)["What works with what"])}
    assert table == {
        "sources": {*find("sources")},
        "formats": {*find("dialects")},
        "stores": {*find("stores")},
        "clients": set[str](),
        "Open WebUI": {*get_args(Display)},
    }


def test_missing_features_of_a_framework_are_those_its_source_declares() -> None:
    sources = {name: source for name, source in find("sources").items() if name != "function"}
    section = sections(read("docs/frameworks.md"), 2)["Supported features"]
    names = re.findall(r"\w+", section.strip().splitlines()[0])
    shown = {row[0].strip("`"): dict(zip(names, row[1:], strict=True)) for row in rows(section) if len(row) == 4}
    assert shown == {
        feature: {name: "no" if feature in source.LACKS else "yes" for name, source in sources.items()}
        for feature in get_args(Feature)
    }
    reasons = {(row[0], row[1].strip("`")): row[2] for row in rows(section) if len(row) == 3}
    assert reasons == {(name, what): why for name, source in sources.items() for what, why in source.LACKS.items()}


def test_make_targets_in_the_documents_exist_and_all_are_listed() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*## ", read("Makefile"), flags=re.MULTILINE))
    for path in DOCUMENTS:
        text = path.read_text()
        shell = "\n".join(blocks(text, "sh"))
        named = set(re.findall(r"`make ([a-z-]+)", text)) | set(re.findall(r"^make ([a-z-]+)", shell, re.MULTILINE))
        assert named <= targets, by_name(path)
    assert set(re.findall(r"`make ([a-z-]+)", read("CONTRIBUTING.md"))) == targets


def test_versions_agree() -> None:
    assert tomllib.loads(read("pyproject.toml"))["project"]["version"] == __version__
    changes = sections(read("CHANGELOG.md"), 2)
    assert next(iter(changes)) == "[Unreleased]"
    newest = re.search(r"\d+\.\d+\.\d+", "".join(f"{heading}{text}" for heading, text in changes.items()))
    assert newest is not None
    assert newest[0] == __version__


@pytest.mark.parametrize("path", DOCUMENTS, ids=by_name)
def test_links_lead_to_existing_targets(path: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code(path.read_text())):
        if link.startswith("https://"):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.is_file(), link
        assert not anchor or anchor in anchors(target.read_text()), link


def test_every_document_is_in_the_index() -> None:
    index = read("docs/index.md")
    for path in DOCS.rglob("*.md"):
        name = str(path.relative_to(DOCS))
        assert name == "index.md" or f"({name})" in index, name


def test_decisions_are_numbered_consecutively_and_have_a_status() -> None:
    decisions = sorted((DOCS / "decisions").iterdir())
    for number, path in enumerate(decisions, 1):
        title, _, status = path.read_text().splitlines()[:3]
        assert path.name.startswith(f"{number:04}-") and title.startswith(f"# {number:04}: "), path.name
        assert re.match(r"\*\*Status\.\*\* (Accepted\.|Superseded (in part )?by \[\d{4}\])", status), path.name


@pytest.mark.parametrize("path", DOCUMENTS, ids=by_name)
def test_documents_contain_no_local_path(path: Path) -> None:
    assert not re.search(r"/(work|tmp|home|root|Users)/", path.read_text())
