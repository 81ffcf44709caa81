"""Loads an agent from a target, such as `my_module:agent` or `agents/bot.py:bot`."""

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any
from zlib import crc32

from limelight import plugins
from limelight.errors import SetupError
from limelight.runs.agent_registry import Agent
from limelight.sources.base import NO_OPTIONS, Options, Source
from limelight.sources.lazy_agents import AsyncFactory, FactorySource


def load_agent(target: str, *, name: str = "", options: Options = NO_OPTIONS) -> Agent:
    """Import the agent that a target such as `my_module:agent` names. Raises SetupError.

    The agent is called `name`; if `name` is empty, it is called like its variable in the module.
    """
    module_name, _, attribute = target.rpartition(":") if ":" in target else (target, "", "agent")
    if not module_name or not attribute:
        raise SetupError(f"target {target!r}: write module:name or path/to/file.py:name")
    load = _load_file if module_name.endswith(".py") else _load_module
    module = load(module_name, target)
    if not hasattr(module, attribute):
        agents = [name for name, value in vars(module).items() if not name.startswith("_") and _is_agent(value)]
        hint = f"; it has: {', '.join(agents)}" if agents else ""
        raise SetupError(f"target {target!r}: {module_name} has no {attribute!r}{hint}")
    source = wrap(getattr(module, attribute), target, options)
    return Agent(name=name or attribute, source=source, title=name or attribute, description=source.description)


def wrap(agent: object, label: str, options: Options = NO_OPTIONS) -> Source:
    """Return the source that runs an agent object. If the object is a factory function, call it to get the agent.

    A function without required parameters that is not an agent itself counts as a factory. An async factory is called
    later, when the source is opened.
    """
    if inspect.iscoroutinefunction(agent) and not _takes_messages(agent):
        factory = AsyncFactory(agent, label, lambda created: _make_source(created, label, options))
        return FactorySource(factory, options)
    if callable(agent) and not (_is_agent(agent) or isinstance(agent, type) or _required_parameters(agent)):
        agent = _call_factory(agent, label)
    return _make_source(agent, label, options)


def _make_source(agent: object, label: str, options: Options) -> Source:
    sources = plugins.find("sources")
    for source in sources.values():
        if source.accepts(agent):
            return source(agent, options)
    raise SetupError(
        f"target {label!r} is a {type(agent).__name__}, which no installed source takes "
        f"({', '.join(sorted(sources))}); an async generator function `async def agent(messages, ctx)` always works"
    )


def _takes_messages(function: Any) -> bool:
    """Whether a coroutine function is an agent, which accepts messages and a context. Otherwise it is a factory."""
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        return bool(_required_parameters(function))
    except ValueError:  # the object has no signature
        return True
    return True


def _call_factory(factory: Callable[[], object], label: str) -> object:
    try:
        return factory()
    except Exception as error:
        raise SetupError(f"target {label!r} cannot be made: {type(error).__name__}: {error}") from error


def _is_agent(value: object) -> bool:
    return any(source.accepts(value) for source in plugins.find("sources").values())


def _required_parameters(function: Any) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some built-in functions have no signature
        return ["?"]
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.default is p.empty and p.kind not in variadic]


def _load_module(name: str, target: str) -> ModuleType:
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    return _import(target, name, lambda: importlib.import_module(name))


def _load_file(file: str, target: str) -> ModuleType:
    path = Path(file)
    if not path.is_file():
        raise SetupError(f"target {target!r}: there is no file {path}")
    folder = str(path.resolve().parent)
    if folder not in sys.path:  # so that the file can import its neighbours
        sys.path.insert(0, folder)
    # A file may have the name of another module (code.py, test.py), so its module gets a unique name. Agents of one
    # file share the module and its state.
    name = f"limelight_target_{path.stem}_{crc32(str(path.resolve()).encode()):08x}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SetupError(f"target {target!r}: {path} is not a Python file")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    loader = spec.loader

    def load() -> ModuleType:
        try:
            loader.exec_module(module)
        except BaseException:
            del sys.modules[name]  # the module is incomplete
            raise
        return module

    return _import(target, name, load)


def _import(target: str, name: str, load: Callable[[], ModuleType]) -> ModuleType:
    """Call `load` to import the module of a target. Turns any error into a SetupError of one line."""
    try:
        return load()
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name == missing or name.startswith(missing + "."):
            hint = "write module:name or path/to/file.py:name"
            raise SetupError(f"target {target!r}: there is no module {missing!r} here; {hint}") from error
        raise SetupError(f"target {target!r} needs the package {missing!r}: pip install {missing}") from error
    except Exception as error:
        raise SetupError(f"target {target!r} cannot be imported: {type(error).__name__}: {error}") from error
