"""Makes `openwebui/deep_agent_pipe.py` out of `openwebui/parts/`: Open WebUI takes one file, people read small ones.

`make pipe` calls it. The parts are put one after the other, in the order in which they need each other; their imports
are gathered at the top, and those of each other are left out.
"""

import ast
import sys
from pathlib import Path

from limelight import __version__

FOLDER = Path(__file__).parents[1] / "openwebui"
PACKAGE = "openwebui.parts"
HEAD = '''"""
title: Deep Agent Pipe
author: Limelight
version: {version}
license: Apache-2.0
description: Shows everything an agent does while it does it: tools, arguments, results, sub-agents, plans, approvals.
"""

# Made from the files in openwebui/parts by `make pipe`: change those. To install it, paste this file under Admin Panel,
# Functions, or let `limelight openwebui install` do it.
'''


def bundle(version: str) -> str:
    """The text of the one file."""
    parts = {path.stem: path.read_text(encoding="utf-8") for path in sorted((FOLDER / "parts").glob("*.py"))}
    trees = {name: ast.parse(text) for name, text in parts.items()}
    order = _ordered({name: _needs(tree) for name, tree in trees.items()})
    _check_names(trees)
    imports = _imports(list(trees.values()))
    bodies = [_body(name, parts[name], trees[name]) for name in order]
    return HEAD.format(version=version) + "\n" + imports + "\n".join(bodies)


def _needs(tree: ast.Module) -> set[str]:
    """The other parts that a part imports."""
    modules = (node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom))
    return {module.rpartition(".")[2] for module in modules if module.startswith(PACKAGE)}


def _ordered(needs: dict[str, set[str]]) -> list[str]:
    order: list[str] = []
    while len(order) < len(needs):
        ready = [name for name, others in needs.items() if name not in order and others <= set(order)]
        if not ready:
            raise SystemExit(f"parts import each other in a circle: {sorted(set(needs) - set(order))}")
        order.append(ready[0])
    return order


def _check_names(trees: dict[str, ast.Module]) -> None:
    """In one file two parts must not mean different things by one name."""
    owner: dict[str, str] = {}
    for part, tree in trees.items():
        for node in tree.body:
            names = [node.name] if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) else []
            if isinstance(node, ast.Assign):
                names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names = [node.target.id]
            for name in names:
                if owner.setdefault(name, part) != part:
                    raise SystemExit(f"{name} is defined in both {owner[name]}.py and {part}.py")


def _imports(trees: list[ast.Module]) -> str:
    """All imports of the parts, sorted as a linter would have them."""
    plain: set[str] = set()
    froms: dict[str, set[str]] = {}
    for tree in trees:
        for node in tree.body:
            if isinstance(node, ast.Import):
                plain |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not (node.module or "").startswith(PACKAGE):
                froms.setdefault(node.module or "", set()).update(alias.name for alias in node.names)
    groups: dict[bool, list[str]] = {True: [], False: []}
    for name in sorted(plain):
        groups[name in sys.stdlib_module_names].append(f"import {name}")
    for module, names in sorted(froms.items()):
        line = f"from {module} import {', '.join(sorted(names))}"
        groups[module.partition(".")[0] in sys.stdlib_module_names].append(line)
    return "\n".join(groups[True]) + "\n\n" + "\n".join(groups[False]) + "\n"


def _body(name: str, text: str, tree: ast.Module) -> str:
    """A part without its docstring and imports, below a line that names it."""
    docstring = ast.get_docstring(tree) or ""
    rest = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)][1:]
    lines = text.splitlines()[_first_line(rest[0]) - 1 :]
    banner = f"# --- {name} ".ljust(120, "-")
    return "\n".join(["", banner, *(f"# {line}" for line in docstring.splitlines()), "", "", *lines]) + "\n"


def _first_line(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def main() -> None:
    (FOLDER / "deep_agent_pipe.py").write_text(bundle(__version__), encoding="utf-8")


if __name__ == "__main__":
    main()
