"""Each route and each command of the socket has a flood, and `docs/attacks.md` names all floods."""

import pytest
from starlette.applications import Starlette
from starlette.routing import Match, Route
from starlette.types import Scope

from benchmarks.floods.catalog import FLOODS, NUMBER, PLACEHOLDERS
from benchmarks.floods.report import DOCUMENT, catalog_section
from limelight.config import load_settings
from limelight.server.app import create_app
from limelight.server.v2.asyncapi import PATH as SOCKET_PATH
from limelight.server.v2.commands import COMMAND_TYPES
from tests.support import agents
from tests.support.documents import read
from tests.support.server import offer

REMEDY = "add it to `benchmarks/floods/catalog.py`"
VALUES = {NUMBER: "12345678", **{f"{{{name}}}": "x" for name in PLACEHOLDERS}, "{asset}": "/assets/index.js"}


def flooded(app: Starlette) -> set[str]:
    """The routes that some flood requests."""
    found: set[str] = set()
    for flood in FLOODS.values():
        for request in flood.requests:
            scope: Scope = {"type": "http", "method": request.method, "path": path_of(request.path), "headers": []}
            route = next((each for each in app.routes if each.matches(scope)[0] is Match.FULL), None)
            if isinstance(route, Route):
                found.add(f"{request.method} {route.path}")
    return found


def path_of(path: str) -> str:
    for name, value in VALUES.items():
        path = path.replace(name, value)
    return path.partition("?")[0]


def test_each_route_has_a_flood() -> None:
    app = create_app(load_settings(environ={}), [offer(agents.echo)])
    routes = {
        f"{method} {route.path}"
        for route in app.routes
        if isinstance(route, Route)
        for method in (route.methods or ())
        if method != "HEAD"
    }
    assert "GET /assets/{name:path}" in routes
    assert routes - flooded(app) == set(), REMEDY


def test_each_command_of_the_socket_has_a_flood() -> None:
    commands = {command for flood in FLOODS.values() for command in flood.commands}
    assert set(COMMAND_TYPES) - commands == set(), REMEDY
    handshakes = {request.path for flood in FLOODS.values() if flood.is_socket for request in flood.requests}
    assert SOCKET_PATH.replace("{session_id}", "{session}") in handshakes


@pytest.mark.parametrize("name", FLOODS)
def test_flood_is_consistent(name: str) -> None:
    flood = FLOODS[name]
    assert flood.variants()
    assert flood.requests or not flood.connections
    assert not flood.is_socket or len(flood.requests) == 1
    assert flood.leaves_after is None or flood.reads == "all"


def test_document_lists_all_floods() -> None:
    assert catalog_section() in read(f"docs/{DOCUMENT}"), "run `.venv/bin/python -m benchmarks.floods --list --write`"
