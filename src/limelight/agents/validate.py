"""What in an agent's table cannot work, or would make no difference: a sentence for each, with the key it is about.

It tries folders out, leaving nothing behind, and looks which modules are installed, importing none. `choosing` asks
here before it makes an agent, and says where in the file the key is.
"""

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

from limelight.builtin.catalogue import BuiltIn
from limelight.builtin.model_choice import ADDRESS_RULE, is_address
from limelight.config import AgentSettings
from limelight.config.suggestions import meant

OWN = {
    "model": "that agent brings its own model",
    "base_url": "that agent brings its own model",
    "imports": "they are for codact, whose code they limit",
    "execute": "it is for deep",
}
"""Why a setting of built-in agents is nothing for somebody's own."""
NOT_HONOURED = {
    "model": "it talks to no model",
    "base_url": "it talks to no model",
    "imports": "they are for codact, whose code they limit",
    "workspace": "it has no files",
    "execute": "it is for deep",
}
NO_OPTION = {
    "max_steps": "its framework ({framework}) has no steps that could be counted",
    "planning_interval": "its framework ({framework}) makes no plans of its own",
    "approve": "it asks itself: by interrupt_on or interrupt() in a graph, requires_confirmation in Agno, "
    "ctx.approve in a function",
}
Mistake = tuple[str, str]
"""A key of the table, and what is wrong with it."""


def table_mistakes(table: AgentSettings, one: BuiltIn | None) -> Iterator[Mistake]:
    """What can be said before the agent is there. `one` is the built-in agent that it is about, if any."""
    reasons = OWN if one is None else {key: why for key, why in NOT_HONOURED.items() if key not in one.settings}
    yield from _set_in_vain(table, reasons)
    if table.base_url and "base_url" not in reasons and not is_address(table.base_url):
        yield "base_url", f"base_url {table.base_url!r} is no address: {ADDRESS_RULE}"
    if table.workspace and "workspace" not in reasons:
        yield from (("workspace", f"workspace: {told}") for told in _unusable(table.workspace))
    if table.approve and one is not None and one.approvable_tools:
        yield from (("approve", told) for told in _cannot_ask(table.approve, one))
    if table.imports and "imports" not in reasons:
        yield from (("imports", f"imports: {told}") for told in _not_installed(table.imports))


def option_mistakes(table: AgentSettings, options: Iterable[str], framework: str) -> Iterator[Mistake]:
    """What the framework of the agent cannot do."""
    reasons = {key: why.format(framework=framework) for key, why in NO_OPTION.items() if key not in options}
    yield from _set_in_vain(table, reasons)


def status_in_vain(table: AgentSettings, one: BuiltIn) -> Iterator[Mistake]:
    """Texts for tools that the agent does not have. A newer framework may bring them, so this is only said."""
    for name in table.status:
        if name not in one.tools:
            close = meant(name, one.tools)
            hint = f"did you mean {close!r}?" if close else f"it has: {', '.join(one.tools)}"
            yield f"status.{name}", f"status.{name} will not be said: {one.name} has no tool {name!r}; {hint}"


def _cannot_ask(names: Iterable[str], one: BuiltIn) -> Iterator[str]:
    """A tool that is misspelt here would run without a question, so this is not let pass."""
    for name in names:
        if name not in one.approvable_tools:
            close = meant(name, one.approvable_tools)
            hint = f"did you mean {close!r}?" if close else f"there are: {', '.join(one.approvable_tools)}"
            yield f"approve: {one.name} cannot ask before {name!r}; {hint}"


def _set_in_vain(table: AgentSettings, reasons: dict[str, str]) -> Iterator[Mistake]:
    for key, reason in reasons.items():
        if getattr(table, key) != getattr(AgentSettings(), key):
            yield key, f"{key} makes no difference for this agent: {reason}"


def _unusable(named: str) -> Iterator[str]:
    """Why a folder cannot be used, or made, if that is so. One that is missing stays missing."""
    try:
        folder = Path(named).expanduser()
        place = folder.absolute()
        there = next(one for one in (place, *place.parents) if one.exists())
    except (OSError, RuntimeError) as error:
        yield f"{named} cannot be reached: {_reason(error)}"
        return
    wanted = f"{folder} cannot be written" if there == place else f"{folder} cannot be made in {there}"
    if there == place and not there.is_dir():
        yield f"{folder} is no folder"
    elif not there.is_dir():
        yield f"{folder} cannot be made, as {there} is no folder"
    elif not os.access(there, os.R_OK | os.W_OK | os.X_OK):
        yield wanted
    elif reason := _tried_out(there, place.relative_to(there)):
        yield f"{wanted}: {reason}"


def _tried_out(there: Path, missing: Path) -> str:
    """Make these folders, and remove them again: rights say little in places like /proc. "" if it works."""
    try:
        with tempfile.TemporaryDirectory(prefix=".limelight-", dir=there) as trial:
            (Path(trial) / missing).mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        return _reason(error)
    return ""


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _not_installed(modules: Iterable[str]) -> Iterator[str]:
    """smolagents looks for the packages only, too, and takes `*` for all and `numpy.*` for a package's parts."""
    for module in modules:
        package = module.partition(".")[0]
        if not package:
            yield f"{module!r} names no module; leave it out"
        elif module != "*" and not _is_there(package):
            close = meant(package, sys.stdlib_module_names)
            fix = f"did you mean {close!r}?" if close else f"pip install {package}, or leave it out"
            yield f"there is no module {module!r} here; {fix}"


def _is_there(package: str) -> bool:
    try:
        return package.isidentifier() and find_spec(package) is not None
    except ValueError:  # a module that does not say where it comes from is there
        return True
