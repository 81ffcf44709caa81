"""Loads an agent from a target: a module or file and a variable, such as `my_module:agent` or `agents/bot.py:bot`."""

import inspect
import re
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import lru_cache
from importlib.metadata import packages_distributions
from itertools import chain
from typing import Any, cast

from limelight import plugins
from limelight.agents.factory_detection import (
    factory_call,
    is_agent_kind,
    needs_event_loop,
    needs_opening,
    open_agent,
    takes_messages,
)
from limelight.agents.module_import import (
    DEFAULT_VARIABLE,
    TARGET_PREFIX,
    describe_error,
    import_file,
    import_module,
)
from limelight.errors import SetupError
from limelight.runs.agent_registry import Agent
from limelight.sources.base import NO_OPTIONS, Options, Source
from limelight.sources.factory_source import Factory, FactorySource

INVALID_NAME_CHARS = re.compile(r"[^A-Za-z0-9._-]+")
TARGET_RULE = "write module:name or path/to/file.py:name"


def load_agent(
    target: str, *, name: str = "", options: Options = NO_OPTIONS, sources: Sequence[type[Source]] = ()
) -> Agent:
    """Import the agent at a target such as `my_module:agent`. Raises SetupError.

    The agent is called `name`; if `name` is empty, it is called like its variable in the module. `sources` are asked
    before the installed ones whether they accept the agent. `my_module:agent_os.writer` is an agent in a collection.
    """
    own_name, title, agent = _import_agent(target, sources)
    held = _agents_in(agent, sources)
    if len(held) > 1:
        places = ", ".join(f"{target}.{_agent_name(name)}" for name in held)
        raise SetupError(f"target {target!r} holds several agents; name one of them: {places}")
    if held:
        title, agent = next(iter(held.items()))
        own_name = _agent_name(title)
    return _agent(name or own_name, name or title, agent, target, options, sources)


def load_agents(target: str, *, sources: Sequence[type[Source]] = ()) -> list[Agent]:
    """Import the agent at a target, or all agents of the collection at it, such as an `AgentOS`. Raises SetupError.

    The agents of a collection have the names that they have in it.
    """
    name, title, agent = _import_agent(target, sources)
    held = _agents_in(agent, sources)
    if not held:
        return [_agent(name, title, agent, target, NO_OPTIONS, sources)]
    return [_agent(_agent_name(name), name, one, f"{target}.{name}", NO_OPTIONS, sources) for name, one in held.items()]


def _agent(
    name: str,
    title: str,
    agent: object,
    label: str,
    options: Options,
    sources: Sequence[type[Source]],
) -> Agent:
    source = wrap(agent, label, options, sources)
    return Agent(name=name, source=source, title=title, description=source.description)


def _import_agent(target: str, sources: Sequence[type[Source]]) -> tuple[str, str, object]:
    """Import the object at a target, or the agent that it names in a collection. Returns its name, title and itself."""
    module, variable = split_target(target)
    variable, dot, part = variable.partition(".")
    whole = f"{module}:{variable}" if dot else target
    attribute, found = import_target(whole, lambda value: _is_agent(value, sources), DEFAULT_VARIABLE)
    if not dot:
        return attribute, attribute, found
    held = _agents_in(found, sources)
    known = {_agent_name(name): name for name in held}
    if part not in known:
        hint = f"; it has: {', '.join(known)}" if known else ""
        raise SetupError(f"target {target!r}: {variable} has no agent {part!r}{hint}")
    return part, known[part], held[known[part]]


def _agents_in(value: object, sources: Sequence[type[Source]]) -> dict[str, object]:
    """Return the agents in a collection by name; {} if the value is not a collection of agents."""
    return {name: one for source in _by_precedence(sources) for name, one in source.agents_in(value).items()}


def _agent_name(name: str) -> str:
    """Return a name in a form that can be the name of an agent and part of a URL."""
    return INVALID_NAME_CHARS.sub("-", name).strip("-._")[:64] or "agent"


def split_target(target: str, default: str = DEFAULT_VARIABLE) -> tuple[str, str]:
    """Split a target into its module or file and the variable's name, which is `default` if the target has none."""
    module, colon, name = target.rpartition(":")
    return (module, name) if colon else (target, default)


def import_target(target: str, is_wanted: Callable[[object], bool], default: str) -> tuple[str, object]:
    """Import the object at a target, and return it with the name of its variable. Raises SetupError.

    A target without a name means the object that is called `default`. If the module has no such object, the error lists
    the objects that are wanted.
    """
    module_name, attribute = split_target(target, default)
    if not module_name or not attribute:
        raise SetupError(f"target {target!r}: {TARGET_RULE}")
    load = import_file if module_name.endswith(".py") else import_module
    module = load(module_name, target)
    if not hasattr(module, attribute):
        names = [name for name, value in vars(module).items() if not name.startswith("_") and is_wanted(value)]
        hint = f"; it has: {', '.join(names)}" if names else ""
        raise SetupError(f"target {target!r}: {module_name} has no {attribute!r}{hint}")
    return attribute, getattr(module, attribute)


def wrap(agent: object, label: str, options: Options = NO_OPTIONS, sources: Sequence[type[Source]] = ()) -> Source:
    """Return the source that runs an agent object, or the agent that a factory creates.

    A synchronous factory function is called at once, and so is a class. Another factory is opened when the source is
    opened.
    """
    if isinstance(agent, type):
        agent = _call_class(agent, label)
    if _is_agent(agent, sources) and not is_agent_kind(agent):
        return _make_source(agent, label, options, sources)
    call = factory_call(agent)
    if call is None:
        if needs_opening(agent):
            return _factory_source(agent, lambda: agent, label, options, sources)
        if is_agent_kind(agent) and not takes_messages(cast("Callable[..., Any]", agent)):
            raise SetupError(f"target {label!r} {_wrong_parameters(agent)}")
        return _make_source(agent, label, options, sources)
    if needs_event_loop(agent):
        return _factory_source(agent, call, label, options, sources)
    made = _call_factory(call, label)
    if _is_agent(made, sources) or not needs_opening(made):
        return _make_source(made, label, options, sources)
    first = chain([made], iter(call, object()))  # the factory was called once, and is called again after a failure
    return _factory_source(agent, lambda: next(first), label, options, sources)


def _factory_source(
    agent: object, call: Callable[[], object], label: str, options: Options, sources: Sequence[type[Source]]
) -> FactorySource:
    async def make(stack: AsyncExitStack) -> object:
        return await open_agent(call(), stack, lambda made: _is_agent(made, sources))

    doc = inspect.getdoc(agent) if inspect.isroutine(agent) else None
    return FactorySource(
        Factory(make, label, lambda created: _make_source(created, label, options, sources), describe_error, doc),
        options,
    )


def _make_source(agent: object, label: str, options: Options, local: Sequence[type[Source]]) -> Source:
    sources = _by_precedence(local)
    for source in sources:
        if _accepts(source, agent):
            try:
                return source(agent, options)
            except TypeError as error:
                raise SetupError(
                    f"target {label!r}: {source.__name__} cannot be created: TypeError: {error}"
                ) from error
    names = ", ".join(sorted(source.framework for source in sources))
    raise SetupError(
        f"target {label!r} {_describe_object(agent)}, which no installed source takes ({names}); an async generator "
        "function `async def agent(messages, ctx)` always works, and so does a function that makes an agent; a source "
        "for another framework can be installed, or written in a file: docs/your-own-source.md"
    )


def _by_precedence(local: Sequence[type[Source]]) -> list[type[Source]]:
    """Return the source classes in the order in which they are tried: local ones first, the function source last.

    The function source accepts any object with a method that is an agent function, also objects of other frameworks.
    """
    installed: dict[str, type[Source]] = plugins.find("sources")
    return [*local, *sorted(installed.values(), key=lambda source: source is installed.get("function"))]


def _accepts(source: type[Source], agent: object) -> bool:
    try:
        return source.accepts(agent)
    except Exception as error:
        raise SetupError(f"{source.__name__}.accepts() has failed: {type(error).__name__}: {error}") from error


def _is_agent(value: object, local: Sequence[type[Source]]) -> bool:
    return any(_accepts(source, value) for source in _by_precedence(local))


def _describe_object(agent: object) -> str:
    """Return the class of an object that is not an agent, and the package that defines the class, for an error."""
    if inspect.isroutine(agent):
        return _wrong_parameters(agent)
    return f"is an object of the class {_class_name(type(agent))}{_package_of(type(agent))}"


def _wrong_parameters(function: object) -> str:
    try:
        signature = str(inspect.signature(cast("Callable[..., Any]", function)))
    except (TypeError, ValueError):
        return "is a function"
    expected = "an agent takes (messages, ctx), and a factory nothing, config or runtime"
    return f"is a function with the parameters {signature}: {expected}"


def _class_name(kind: type) -> str:
    is_plain = kind.__module__ == "builtins" or kind.__module__.startswith(TARGET_PREFIX)
    return kind.__qualname__ if is_plain else f"{kind.__module__}.{kind.__qualname__}"


def _package_of(kind: type) -> str:
    """Return ` of the package NAME` for the installed package that defines a class; "" if there is none."""
    names = _distributions().get(kind.__module__.partition(".")[0], [])
    return f" of the package {names[0]}" if names else ""


@lru_cache(maxsize=1)
def _distributions() -> dict[str, list[str]]:
    return {**packages_distributions()}


def _call_factory(factory: Callable[[], object], label: str) -> object:
    try:
        return factory()
    except (Exception, SystemExit) as error:
        raise SetupError(f"target {label!r} cannot be created: {describe_error(error)}") from error


def _call_class(kind: type, label: str) -> object:
    try:
        needed = [p.name for p in inspect.signature(kind).parameters.values() if _is_required(p)]
    except (TypeError, ValueError):  # some built-in classes have no signature
        needed = ["?"]
    if needed:
        advice = f"serve an object of it, as in `agent = {kind.__name__}(…)`"
        raise SetupError(f"target {label!r} is a class that needs arguments ({', '.join(needed)}): {advice}")
    return _call_factory(kind, label)


def _is_required(parameter: inspect.Parameter) -> bool:
    is_variadic = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return parameter.default is parameter.empty and not is_variadic
