"""The one file against the rules of Open WebUI: frontmatter, imports, and the class Pipe."""

import ast
import sys

import pytest

from tests.openwebui.function_rules import FILE, REPLACED_IMPORTS, frontmatter, load_function, pipe_module

TEXT = FILE.read_text(encoding="utf-8")
ALLOWED = {"httpx", "pydantic"}
"""Packages that every Open WebUI has, so that an installation needs no others."""


def test_frontmatter_is_complete() -> None:
    fields = frontmatter(TEXT)
    assert set(fields) == {"title", "author", "version", "license", "description"}
    assert all(fields.values())
    assert fields["title"] == "Deep Agent Pipe"


def test_frontmatter_has_the_version_of_the_package() -> None:
    from limelight import __version__

    assert frontmatter(TEXT)["version"] == __version__


@pytest.mark.requirement("pipe-self-contained")
def test_imports_are_available_in_every_open_webui() -> None:
    nodes = list(ast.walk(ast.parse(TEXT)))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "." for node in nodes if isinstance(node, ast.ImportFrom)}
    foreign = {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names)
    assert foreign == ALLOWED


def test_file_has_no_text_that_open_webui_replaces() -> None:
    assert not [text for text in REPLACED_IMPORTS if text in TEXT]


def test_loading_leaves_no_module_behind() -> None:
    before = set(sys.modules)
    module = load_function(TEXT)
    assert module.__name__ not in sys.modules
    assert set(sys.modules) == before
    pipe = module.Pipe()
    assert (pipe.name, pipe.type) == ("Deep Agent Pipe", "manifold")
    assert isinstance(pipe.valves, pipe.Valves)


def test_pipe_has_no_state_but_its_valves() -> None:
    """One instance serves all users and chats."""
    pipe: object = pipe_module().Pipe()
    assert set(vars(pipe)) == {"type", "name", "valves"}
