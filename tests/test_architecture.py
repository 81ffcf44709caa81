"""The layers of `docs/architecture.md` against the imports in `src/limelight`."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import limelight
from tests.support.documents import ROOT

PACKAGE = Path(limelight.__file__).parent
BASE = {"limelight", "limelight.errors", "limelight.events"}
"""What every layer may import."""

MODULES = {
    ".".join(("limelight", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}

ENTRY = {
    "limelight": {"limelight.client", "limelight.events", "limelight.sources.tool_api"},
    "limelight.__main__": {"limelight.cli"},
}
"""The two modules that are the package's own entry and no layer."""


def rows(header: str) -> Iterator[list[str]]:
    """The cells of the table in the document that begins with this header."""
    lines = (ROOT / "docs" / "architecture.md").read_text().splitlines()
    for line in lines[lines.index(header) + 2 :]:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split("|")]


def names_in(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


MAY_IMPORT = ENTRY | {
    f"limelight.{layer}": BASE | {f"limelight.{name}" for name in (layer, *names_in(imports))}
    for (layer_cell, _, imports) in rows("| layer | what it contains | may import |")
    for layer in names_in(layer_cell)
}

WITHOUT = " without "
ALL_BUT = "all but "


def purity_rules() -> Iterator[tuple[set[str], set[str], set[str]]]:
    """The layers of each row (empty: all), those that are excepted, and the modules that they must not import."""
    for layers, forbidden in rows("| layer | must not import |"):
        if layers.startswith(ALL_BUT):
            yield set(), {f"limelight.{name}" for name in names_in(layers)}, set(names_in(forbidden))
        else:
            included, _, excepted = layers.partition(WITHOUT)
            yield (
                {f"limelight.{name}" for name in names_in(included)},
                {f"limelight.{name}" for name in names_in(excepted)},
                set(names_in(forbidden)),
            )


PURITY = list(purity_rules())


def is_in(module: str, layers: set[str]) -> bool:
    return any(module == layer or module.startswith(f"{layer}.") for layer in layers)


def layer_of(module: str) -> str | None:
    """The row that a module falls under: its own, or that of the nearest package around it."""
    while module not in MAY_IMPORT:
        module, dot, _ = module.rpartition(".")
        if not dot or module == "limelight":
            return None
    return module


def forbidden_for(module: str) -> set[str]:
    return {
        name
        for included, excepted, forbidden in PURITY
        if (not included or is_in(module, included)) and not is_in(module, excepted)
        for name in forbidden
    }


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
                full = f"{base}.{alias.name}"
                yield full if full in MODULES else base


def is_allowed(imported: str, rules: set[str]) -> bool:
    return imported in rules or is_in(imported, rules - {"limelight"})


def test_tables_and_imports_are_parsed() -> None:
    assert len(MODULES) > 40
    assert len(MAY_IMPORT) > 25
    assert {"limelight.events", "limelight.errors"} <= set(imports("limelight.grammar", MODULES["limelight.grammar"]))
    assert "limelight.plugins" in set(imports("limelight.agents.load", MODULES["limelight.agents.load"]))
    assert "time" in forbidden_for("limelight.dialects.typed")
    assert "socket" in forbidden_for("limelight.understudy.replies")
    assert "socket" not in forbidden_for("limelight.understudy.server")
    assert "starlette" in forbidden_for("limelight.runs.engine")
    assert "starlette" not in forbidden_for("limelight.server.v2.socket")


def test_import_against_the_layers_is_refused() -> None:
    assert not is_allowed("limelight.dialects.typed", MAY_IMPORT["limelight.runs"])
    assert not is_allowed("limelight.stores.sqlite.store", MAY_IMPORT["limelight.runs"])
    assert not is_allowed("limelight.runs", MAY_IMPORT["limelight.stores"])
    assert is_allowed("limelight.dialects.base", MAY_IMPORT["limelight.dialects"])
    assert layer_of("limelight.unknown.module") is None


@pytest.mark.parametrize("module", MODULES)
def test_every_module_is_in_a_layer(module: str) -> None:
    assert layer_of(module), f"{module} has no row in the table of layers in docs/architecture.md"


def test_every_name_in_the_tables_is_a_module() -> None:
    named = {name for rules in MAY_IMPORT.values() for name in rules}
    named |= {name for included, excepted, _ in PURITY for name in included | excepted}
    assert named <= set(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_imports_follow_the_layers(module: str) -> None:
    layer = layer_of(module) or ""
    others = MAY_IMPORT[layer] - {layer}  # a package inside of the layer that has a row of its own has to be named, too
    ours = {name for name in imports(module, MODULES[module]) if name.partition(".")[0] == "limelight"}
    assert {name for name in ours if layer_of(name) != layer and not is_allowed(name, others)} == set()


@pytest.mark.parametrize("layer", [layer for layer in MAY_IMPORT if layer not in ENTRY])
def test_every_permission_is_used(layer: str) -> None:
    """A permission that no import needs is removed, so that the table shows what really depends on what."""
    used = {name for module, path in MODULES.items() if layer_of(module) == layer for name in imports(module, path)}
    granted = MAY_IMPORT[layer] - BASE - {layer}
    assert {rule for rule in granted if not any(is_in(name, {rule}) for name in used)} == set()


@pytest.mark.parametrize("module", MODULES)
def test_pure_modules_import_no_clock_and_no_loop(module: str) -> None:
    assert {name.partition(".")[0] for name in imports(module, MODULES[module])} & forbidden_for(module) == set()


@pytest.mark.parametrize("module", [m for m, path in MODULES.items() if len(path.read_text().splitlines()) > 20])
def test_modules_have_a_docstring(module: str) -> None:
    assert ast.get_docstring(ast.parse(MODULES[module].read_text())), f"{module} has no docstring"


def tree_in_contributing() -> dict[str, set[str]]:
    """The folders that CONTRIBUTING draws, by path: the names of the folders that are indented below each."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    tree = text[text.index("```\nsrc/limelight/\n") :].split("```")[1]
    folders: dict[str, set[str]] = {}
    parents: list[str] = []
    for line in tree.strip().splitlines():
        depth = (len(line) - len(line.lstrip(" "))) // 2
        name = line.split()[0].rstrip("/")
        parents = [*parents[:depth], name]
        folders["/".join(parents)] = set()
        if depth:
            folders["/".join(parents[:-1])].add(name)
    return folders


def folders_of(folder: Path) -> set[str]:
    """The folders with files in them, without those that builds and tests make."""
    made = {"build", "dist", "node_modules", "page"}
    return {
        child.name
        for child in folder.iterdir()
        if child.is_dir() and child.name not in made and not child.name.startswith((".", "__"))
        if any(file.is_file() for file in child.rglob("*") if "__pycache__" not in file.parts)
    }


def test_tree_in_contributing_equals_the_folders() -> None:
    drawn = tree_in_contributing()
    assert {name.partition("/")[0] for name in drawn} == folders_of(ROOT)
    assert drawn["src/limelight"] == folders_of(PACKAGE)
    assert drawn["src/limelight/server"] == folders_of(PACKAGE / "server")
    assert drawn["web/src"] == folders_of(ROOT / "web" / "src")
    assert drawn["tests"] <= folders_of(ROOT / "tests")
    assert folders_of(ROOT / "tests") - drawn["tests"] <= folders_of(PACKAGE)
