"""Writes `openwebui/deep_agent_pipe.py`, the one file that Open WebUI loads, from the modules in `openwebui/parts/`.

`make pipe` calls it. The file has the imports of all parts at the top, then each part below a line with its name.
"""

import ast
import sys
from pathlib import Path

from limelight import __version__

FOLDER = Path(__file__).parents[1] / "openwebui"
PACKAGE = "openwebui.parts"
PARTS = (
    "valves",
    "frames",
    "text_format",
    "server_client",
    "run_stream",
    "run_state",
    "request",
    "downloads",
    "output_items",
    "native_display",
    "collapse_display",
    "details_display",
    "status_line",
    "citations",
    "answers",
    "approvals",
    "run_presenter",
    "turn",
    "pipe",
)
"""The parts in the order of the file. A part may import only the parts before it."""

HEADER = '''"""
title: Deep Agent Pipe
author: Limelight
version: {version}
license: Apache-2.0
description: Shows everything an agent does while it does it: tools, arguments, results, sub-agents, plans, approvals.
"""

# To install this file, paste it under Admin Panel, Functions, or run `limelight openwebui install`.
# `make pipe` generates it from the modules in openwebui/parts; edit those. Its sections:
#
{contents}
'''


def bundle(version: str, parts: tuple[str, ...] = PARTS) -> str:
    """Return the text of the generated file."""
    sources = {path.stem: path.read_text(encoding="utf-8") for path in sorted((FOLDER / "parts").glob("*.py"))}
    if set(sources) != set(parts):
        raise SystemExit(f"PARTS and the files in openwebui/parts differ: {sorted(set(sources) ^ set(parts))}")
    trees = {name: ast.parse(sources[name]) for name in parts}
    _check_order(trees)
    _check_names(trees)
    contents = "\n".join(f"#   {name:<18}{_docstring(tree)[0]}" for name, tree in trees.items())
    sections = [_section(name, sources[name], tree) for name, tree in trees.items()]
    return HEADER.format(version=version, contents=contents) + "\n" + _imports(trees) + "\n".join(sections)


def _check_order(trees: dict[str, ast.Module]) -> None:
    """Raise an error if a part imports itself or a part that comes later in the file."""
    earlier: set[str] = set()
    for name, tree in trees.items():
        modules = [node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)]
        imported = {module.rpartition(".")[2] for module in modules if module.startswith(PACKAGE)}
        if imported - earlier:
            raise SystemExit(f"{name}.py imports parts that come after it in PARTS: {sorted(imported - earlier)}")
        earlier.add(name)


def _check_names(trees: dict[str, ast.Module]) -> None:
    """Raise an error if two parts define the same name: in one file the second would replace the first."""
    owners: dict[str, str] = {}
    for part, tree in trees.items():
        for node in tree.body:
            names = [node.name] if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) else []
            if isinstance(node, ast.Assign):
                names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names = [node.target.id]
            for name in names:
                if owners.setdefault(name, part) != part:
                    raise SystemExit(f"{name} is defined in both {owners[name]}.py and {part}.py")


def _imports(trees: dict[str, ast.Module]) -> str:
    """Return the imports of all parts, except those of other parts, in the order that the linter requires."""
    modules: set[str] = set()
    names: dict[str, set[str]] = {}
    for node in (node for tree in trees.values() for node in tree.body):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not (node.module or "").startswith(PACKAGE):
            names.setdefault(node.module or "", set()).update(alias.name for alias in node.names)
    lines = [(module, f"import {module}") for module in sorted(modules)]
    lines += [(module, f"from {module} import {', '.join(sorted(names[module]))}") for module in sorted(names)]
    groups: dict[bool, list[str]] = {True: [], False: []}
    for module, line in lines:
        groups[module.partition(".")[0] in sys.stdlib_module_names].append(line)
    return "\n".join(groups[True]) + "\n\n" + "\n".join(groups[False]) + "\n"


def _section(name: str, source: str, tree: ast.Module) -> str:
    """Return the text of a part: a line with its name, its docstring as a comment, and its code without imports."""
    body = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)][1:]
    lines = source.splitlines()[_first_line(body[0]) - 1 :]
    title = f"# --- {name} ".ljust(120, "-")
    return "\n".join(["", title, *(f"# {line}".rstrip() for line in _docstring(tree)), "", "", *lines]) + "\n"


def _docstring(tree: ast.Module) -> list[str]:
    return (ast.get_docstring(tree) or "").splitlines()


def _first_line(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def main() -> None:
    (FOLDER / "deep_agent_pipe.py").write_text(bundle(__version__), encoding="utf-8")


if __name__ == "__main__":
    main()
