"""Imports point one way. A module that nobody has given a place, or an import that points upwards, fails here.

events ← deltas, grammar ← sources, dialects, stores ← runs ← server ← cli
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import limelight

ROOT = Path(limelight.__file__).parent

BASE = {"limelight", "limelight.errors", "limelight.events"}
"""What every part may know: the version, the errors, the vocabulary."""

MAY_IMPORT: dict[str, set[str]] = {
    "limelight": {"limelight.client", "limelight.events", "limelight.sources.saying"},
    "limelight.__main__": {"limelight.cli"},
    "limelight.addresses": set(),
    "limelight.answers": {"limelight.events"},
    "limelight.events": set(),
    "limelight.errors": set(),
    "limelight.hiding": {"limelight.access"},
    "limelight.pieces": {"limelight.access", "limelight.hiding"},
    "limelight.instants": set(),
    "limelight.links": set(),
    "limelight.log_context": set(),
    "limelight.messages": set(),
    "limelight.trees": set(),
    "limelight.uncut": set(),
    "limelight.registry": BASE,
    "limelight.config": BASE | {"limelight.config"},
    "limelight.access": BASE | {"limelight.access"},
    "limelight.deltas": BASE,
    "limelight.grammar": BASE,
    "limelight.sources": BASE | {"limelight.addresses", "limelight.messages", "limelight.grammar", "limelight.sources"},
    "limelight.dialects": BASE
    | {
        "limelight.answers",
        "limelight.deltas",
        "limelight.dialects",
        "limelight.grammar",
        "limelight.instants",
        "limelight.links",
    },
    "limelight.databases": set(),
    "limelight.backups": BASE | {"limelight.backups", "limelight.databases", "limelight.trees"},
    "limelight.stores": BASE | {"limelight.databases", "limelight.deltas", "limelight.stores", "limelight.uncut"},
    "limelight.runs": BASE
    | {
        "limelight.addresses",
        "limelight.answers",
        "limelight.hiding",
        "limelight.pieces",
        "limelight.links",
        "limelight.log_context",
        "limelight.messages",
        "limelight.deltas",
        "limelight.grammar",
        "limelight.sources.base",
        "limelight.stores.base",
        "limelight.dialects.base",
        "limelight.dialects.encoder",
        "limelight.runs",
        "limelight.trees",
    },
    "limelight.runs.retention": {"limelight.instants"},
    "limelight.demo": BASE | {"limelight.messages", "limelight.sources.base", "limelight.demo"},
    "limelight.builtin": BASE
    | {
        "limelight.builtin",
        "limelight.demo",
        "limelight.registry",
        "limelight.sources.base",
        "limelight.sources.saying",
    },
    "limelight.offering": BASE
    | {
        "limelight.builtin.catalogue",
        "limelight.choosing",
        "limelight.config",
        "limelight.runs.agents",
    },
    "limelight.choosing": BASE
    | {
        "limelight.builtin",
        "limelight.config",
        "limelight.refusing",
        "limelight.runs.agents",
        "limelight.sources.base",
        "limelight.targets",
    },
    "limelight.refusing": BASE | {"limelight.builtin", "limelight.config"},
    "limelight.awaited": BASE | {"limelight.sources.base"},
    "limelight.targets": BASE
    | {"limelight.awaited", "limelight.registry", "limelight.runs.agents", "limelight.sources.base"},
    "limelight.tracing": BASE
    | {
        "limelight.hiding",
        "limelight.log_context",
        "limelight.runs.endings",
        "limelight.stores.base",
        "limelight.tracing",
    },
    "limelight.tracing.run_trace": BASE | {"limelight.grammar", "limelight.runs.endings", "limelight.tracing"},
    "limelight.client": BASE | {"limelight.client"},
    "limelight.openwebui": BASE | {"limelight.openwebui"},
    "limelight.understudy": BASE | {"limelight.understudy"},
    "limelight.understudy.server": BASE | {"limelight.understudy"},
    "limelight.server": BASE
    | {
        "limelight.access",
        "limelight.hiding",
        "limelight.links",
        "limelight.log_context",
        "limelight.messages",
        "limelight.config",
        "limelight.registry",
        "limelight.offering",
        "limelight.sources.base",
        "limelight.stores.base",
        "limelight.dialects.base",
        "limelight.dialects.encoder",
        "limelight.runs",
        "limelight.server",
        "limelight.tracing",
        "limelight.understudy.server",
        "limelight.uncut",
    },
    "limelight.server.v2": BASE
    | {
        "limelight.deltas",
        "limelight.instants",
        "limelight.log_context",
        "limelight.messages",
        "limelight.sources.base",
        "limelight.stores.base",
        "limelight.dialects.base",
        "limelight.dialects.encoder",
        "limelight.dialects.records",
        "limelight.dialects.v2",
        "limelight.runs",
        "limelight.server",
    },
    "limelight.cli": BASE
    | {
        "limelight.access",
        "limelight.backups",
        "limelight.config",
        "limelight.hiding",
        "limelight.instants",
        "limelight.log_context",
        "limelight.registry",
        "limelight.offering",
        "limelight.builtin.model",
        "limelight.dialects.base",
        "limelight.client",
        "limelight.openwebui",
        "limelight.runs.retention",
        "limelight.runs.retention_guard",
        "limelight.server",
        "limelight.understudy",
        "limelight.cli",
    },
}
"""For each module or package: the modules and packages of ours that it may import."""

WEB = {"starlette", "uvicorn", "fastapi", "httptools", "uvloop", "typer"}
MUST_NOT_IMPORT: dict[str, set[str]] = {
    "limelight.dialects": {"asyncio", "time", "datetime", "threading", "random", "socket", "sqlite3"},
    "limelight.events": {"asyncio", "time", "datetime"},
    "limelight.grammar": {"asyncio", "time", "datetime"},
    "limelight.deltas": {"asyncio", "time", "datetime"},
    "limelight.runs.retention": {"asyncio", "time", "datetime", "threading", "os", "pathlib", "sqlite3"},
    "limelight.stores": {"time", "datetime"},
    "limelight.tracing.run_trace": {"asyncio", "time", "datetime", "threading", "random", "opentelemetry"},
    "limelight.understudy": {"asyncio", "time", "datetime", "threading", "random", "secrets", "socket", "uuid"},
}
"""What is forbidden besides: a dialect has no clock and no loop; a store is told the time; the understudy leaves
nothing to chance, but for its server."""

KNOW_THE_WEB = ("limelight.server", "limelight.server.v2", "limelight.cli", "limelight.understudy.server")

MODULES = {
    ".".join(("limelight", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
}


def place_of(module: str) -> str | None:
    """The rule that a module falls under: its own, or that of the package that it is in."""
    while module not in MAY_IMPORT:
        module, dot, _ = module.rpartition(".")
        if not dot or module == "limelight":
            return None
    return module


def imports(module: str, path: Path) -> Iterator[str]:
    """The names of all modules that a file imports, wherever in it."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                base = ".".join([*parents[: len(parents) - node.level + 1], *filter(None, [node.module])])
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                yield whole if whole in MODULES else base


def allowed(imported: str, rules: set[str]) -> bool:
    return imported in rules or any(imported.startswith(f"{rule}.") for rule in rules - {"limelight"})


def test_the_walk_finds_the_modules_and_their_imports() -> None:
    """So that the tests below do not pass because there was nothing to look at."""
    assert len(MODULES) > 40
    assert {"limelight.events", "limelight.errors"} <= set(imports("limelight.grammar", MODULES["limelight.grammar"]))
    assert "limelight.registry" in set(imports("limelight.targets", MODULES["limelight.targets"]))


def test_a_breach_would_be_seen() -> None:
    assert not allowed("limelight.dialects.typed", MAY_IMPORT["limelight.runs"])
    assert not allowed("limelight.stores.sqlite.store", MAY_IMPORT["limelight.runs"])
    assert not allowed("limelight.runs", MAY_IMPORT["limelight.stores"])
    assert allowed("limelight.dialects.base", MAY_IMPORT["limelight.dialects"])
    assert place_of("limelight.newcomer.thing") is None


@pytest.mark.parametrize("module", MODULES)
def test_every_module_has_a_place(module: str) -> None:
    assert place_of(module), f"{module} stands nowhere: give it a rule in this file, and in the design"


def test_every_rule_has_a_module() -> None:
    assert all(rule in MODULES for rule in MAY_IMPORT)
    named = {name for rules in MAY_IMPORT.values() for name in rules}
    assert named <= set(MODULES), "a rule allows what is not there any more"


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_one_way(module: str) -> None:
    rules = MAY_IMPORT[place_of(module) or ""]
    ours = {name for name in imports(module, MODULES[module]) if name.partition(".")[0] == "limelight"}
    assert {name for name in ours if not allowed(name, rules)} == set()


@pytest.mark.parametrize("module", [m for m in MODULES if place_of(m) not in KNOW_THE_WEB])
def test_nothing_below_the_server_knows_the_web(module: str) -> None:
    assert {name.partition(".")[0] for name in imports(module, MODULES[module])} & WEB == set()


@pytest.mark.parametrize("module", [m for m in MODULES if place_of(m) in MUST_NOT_IMPORT])
def test_the_pure_parts_have_no_clock_and_no_loop(module: str) -> None:
    forbidden = MUST_NOT_IMPORT[place_of(module) or ""]
    assert {name.partition(".")[0] for name in imports(module, MODULES[module])} & forbidden == set()


@pytest.mark.parametrize("module", [m for m, path in MODULES.items() if len(path.read_text().splitlines()) > 20])
def test_a_module_of_some_length_says_what_it_is(module: str) -> None:
    assert ast.get_docstring(ast.parse(MODULES[module].read_text())), f"{module} has no docstring"
