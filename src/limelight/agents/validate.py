"""Validates an agent's table in the settings: finds values that cannot work or have no effect on this agent.

Checks whether a workspace can be written, without leaving files behind, and whether modules are installed,
without importing them. `resolve` adds the place in the file to each mistake.
"""

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from limelight.builtin.catalogue import BuiltIn
from limelight.builtin.model_choice import ADDRESS_RULE, is_http_url
from limelight.config import AgentSettings
from limelight.config.validation import suggestion
from limelight.sources.base import Source
from limelight.sources.input_schemas import is_reserved, value_mistakes
from limelight.sources.input_schemas import option_mistakes as schema_mistakes

NOT_FOR_OWN_AGENTS = {
    "model": "that agent brings its own model",
    "base_url": "that agent brings its own model",
    "imports": "they are for codact, whose code they limit",
    "execute": "it is for deep",
}
"""Settings that have no effect on the user's own agents, each with the reason for the message."""
UNSUPPORTED = {
    "model": "it uses no model",
    "base_url": "it uses no model",
    "imports": "they are for codact, whose code they limit",
    "workspace": "it has no files",
    "execute": "it is for deep",
    "sandbox": "code and commands of built-in agents always run in the sandbox",
    **dict.fromkeys(("input", "context", "context_from_request"), "it is asked in words only"),
}
"""Settings that some built-in agents do not support, each with the reason for the message."""
UNSUPPORTED_OPTIONS = {
    "max_steps": "its framework ({framework}) has no steps that could be counted",
    "planning_interval": "its framework ({framework}) makes no plans of its own",
    "approve": "it asks itself: by interrupt_on or interrupt() in a graph, requires_confirmation in Agno, "
    "ctx.approve in a function",
    "sandbox": "its framework ({framework}) runs no code that a model writes",
    "input": "it is asked with messages only",
    "context": "it takes no context",
}
"""Settings that some frameworks do not support, each with the reason for the message."""


class Mistake(NamedTuple):
    """A mistake in an agent's table: the key of the setting, and a message about what is wrong."""

    key: str
    message: str


def table_mistakes(table: AgentSettings, agent: BuiltIn | None) -> Iterator[Mistake]:
    """Yield the mistakes in an agent's table that can be found before the agent is loaded.

    `agent` is the built-in agent that the table adjusts; None if the table defines an agent of the user.
    """
    if agent is None:
        reasons = NOT_FOR_OWN_AGENTS
    else:
        reasons = {key: reason for key, reason in UNSUPPORTED.items() if key not in agent.settings}
    yield from _without_effect(table, reasons)
    if table.base_url and "base_url" not in reasons and not is_http_url(table.base_url):
        yield Mistake("base_url", f"base_url {table.base_url!r} is not a valid address: {ADDRESS_RULE}")
    if table.workspace and "workspace" not in reasons and (error := _workspace_error(table.workspace)):
        yield Mistake("workspace", f"workspace: {error}")
    if table.approve and agent is not None and agent.approvable_tools:
        yield from _approve_mistakes(table.approve, agent)
    if table.imports and "imports" not in reasons:
        yield from (Mistake("imports", f"imports: {error}") for error in _missing_modules(table.imports))


def input_mistakes(table: AgentSettings, source: Source) -> Iterator[Mistake]:
    """Yield the mistakes in an agent's input and context values, and in the names of those that requests may set.

    An agent that a factory creates later is checked when it is created.
    """
    schemas = source.schemas
    for path, message in schema_mistakes(schemas, table.input, table.context):
        yield Mistake(path.partition("[")[0], f"{path}: {message}")
    if table.context_from_request and not schemas.is_known:
        return
    if table.context_from_request and schemas.all_context is None:
        yield Mistake("context_from_request", "context_from_request has no effect on this agent: it takes no context")
    elif isinstance(table.context_from_request, list):
        for name in table.context_from_request:
            known = schemas.all_context or {}
            if is_reserved(name) or ("properties" in known and name not in known["properties"]):
                mistake = value_mistakes({name: None}, known)[0]
                yield Mistake("context_from_request", f"context_from_request: {mistake.message}")


def option_mistakes(table: AgentSettings, options: Iterable[str], framework: str) -> Iterator[Mistake]:
    """Yield a mistake for each option in an agent's table that the agent's framework does not support."""
    reasons = {
        key: reason.format(framework=framework) for key, reason in UNSUPPORTED_OPTIONS.items() if key not in options
    }
    yield from _without_effect(table, reasons)


def status_mistakes(table: AgentSettings, agent: BuiltIn) -> Iterator[Mistake]:
    """Yield a warning for each status text in an agent's table that belongs to an unknown tool.

    It is not an error, because a newer version of the framework may have the tool.
    """
    for name in table.status:
        if name not in agent.tools:
            hint = suggestion(name, agent.tools, f"; it has: {', '.join(agent.tools)}")
            message = f"status.{name} will not be shown: {agent.name} has no tool {name!r}{hint}"
            yield Mistake(f"status.{name}", message)


def _approve_mistakes(names: Iterable[str], agent: BuiltIn) -> Iterator[Mistake]:
    """Yield an error for each unknown tool in `approve`; a misspelt tool would otherwise run without approval."""
    for name in names:
        if name not in agent.approvable_tools:
            hint = suggestion(name, agent.approvable_tools, f"; there are: {', '.join(agent.approvable_tools)}")
            yield Mistake("approve", f"approve: {agent.name} has no approvable tool {name!r}{hint}")


def _without_effect(table: AgentSettings, reasons: dict[str, str]) -> Iterator[Mistake]:
    for key, reason in reasons.items():
        if getattr(table, key) != getattr(AgentSettings(), key):
            yield Mistake(key, f"{key} has no effect on this agent: {reason}")


def _workspace_error(workspace: str) -> str:
    """Return why a folder cannot be a workspace; "" if it can. The folder is not created."""
    try:
        folder = Path(workspace).expanduser()
        path = folder.absolute()
        existing = next(parent for parent in (path, *path.parents) if parent.exists())
    except (OSError, RuntimeError) as error:
        return f"{workspace} cannot be reached: {_reason(error)}"
    if not existing.is_dir():
        if existing == path:
            return f"{folder} is not a folder"
        return f"{folder} cannot be created, as {existing} is not a folder"
    refusal = f"{folder} cannot be written" if existing == path else f"{folder} cannot be created in {existing}"
    if not os.access(existing, os.R_OK | os.W_OK | os.X_OK):
        return refusal
    reason = _creation_error(existing, path.relative_to(existing))
    return f"{refusal}: {reason}" if reason else ""


def _creation_error(existing: Path, missing: Path) -> str:
    """Return why folders cannot be created in the folder `existing`; "" if they can.

    As a test, folders are created and removed again: in places like /proc the permissions alone are misleading.
    """
    try:
        with tempfile.TemporaryDirectory(prefix=".limelight-", dir=existing) as trial:
            (Path(trial) / missing).mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        return _reason(error)
    return ""


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _missing_modules(modules: Iterable[str]) -> Iterator[str]:
    """Yield an error for each module in the setting `imports` whose package is not installed.

    `*` stands for all modules, and `numpy.*` for the submodules of numpy.
    """
    for module in modules:
        package = module.partition(".")[0]
        if not package:
            yield f"{module!r} is not a module; leave it out"
        elif module != "*" and not _is_installed(package):
            hint = suggestion(package, sys.stdlib_module_names, f"; pip install {package}, or leave it out")
            yield f"there is no module {module!r} here{hint}"


def _is_installed(package: str) -> bool:
    try:
        return package.isidentifier() and find_spec(package) is not None
    except ValueError:  # the module is loaded and has no spec
        return True
