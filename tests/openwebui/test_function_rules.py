"""The one file, by the rules of Open WebUI: its head, what it imports, and what a class Pipe must have."""

import ast
import sys

from tests.openwebui.function_rules import FILE, REPLACED, frontmatter, load, pipe_module

TEXT = FILE.read_text(encoding="utf-8")
ALLOWED = {"httpx", "pydantic"}
"""What every Open WebUI has, so that nothing is installed when the pipe is."""


def test_the_head_says_what_it_is() -> None:
    head = frontmatter(TEXT)
    assert set(head) == {"title", "author", "version", "license", "description"}
    assert all(head.values())
    assert head["title"] == "Deep Agent Pipe"


def test_its_version_is_the_packages() -> None:
    from limelight import __version__

    assert frontmatter(TEXT)["version"] == __version__


def test_it_imports_only_what_every_open_webui_has() -> None:
    nodes = list(ast.walk(ast.parse(TEXT)))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "." for node in nodes if isinstance(node, ast.ImportFrom)}
    foreign = {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names)
    assert foreign == ALLOWED


def test_open_webui_replaces_nothing_in_it() -> None:
    assert not [words for words in REPLACED if words in TEXT]


def test_it_loads_and_leaves_nothing_behind() -> None:
    before = set(sys.modules)
    module = load(TEXT)
    assert module.__name__ not in sys.modules
    assert set(sys.modules) == before
    pipe = module.Pipe()
    assert (pipe.name, pipe.type) == ("Deep Agent Pipe", "manifold")
    assert isinstance(pipe.valves, pipe.Valves)


def test_a_pipe_keeps_nothing_but_its_valves() -> None:
    """One instance serves all users."""
    pipe: object = pipe_module().Pipe()
    assert set(vars(pipe)) == {"type", "name", "valves"}
