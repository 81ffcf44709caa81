"""From what a person writes (`my_module:agent`, `agents/bot.py:bot`) to an agent on offer."""

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
from limelight.runs.agents import Agent
from limelight.sources.base import NO_OPTIONS, Options, Source
from limelight.sources.lazy import AsyncFactory, FactorySource


def load_agent(target: str, *, name: str = "", options: Options = NO_OPTIONS) -> Agent:
    """Import the target and wrap it. Its name is the variable's unless another is given."""
    place, _, attribute = target.rpartition(":") if ":" in target else (target, "", "agent")
    if not place or not attribute:
        raise SetupError(f"target {target!r}: write module:name or path/to/file.py:name")
    module = _load_file(Path(place), target) if place.endswith(".py") else _load_module(place, target)
    if not hasattr(module, attribute):
        there = [n for n, v in vars(module).items() if not n.startswith("_") and _is_agent(v)]
        hint = f"; it has: {', '.join(there)}" if there else ""
        raise SetupError(f"target {target!r}: {place} has no {attribute!r}{hint}")
    source = wrap(getattr(module, attribute), target, options)
    return Agent(name=name or attribute, source=source, title=name or attribute, description=source.description)


def wrap(thing: object, label: str, options: Options = NO_OPTIONS) -> Source:
    """The source for an agent object, or for what a factory without arguments makes."""
    if inspect.iscoroutinefunction(thing) and not _takes_messages(thing):
        factory = AsyncFactory(thing, label, lambda made: _wrapped(made, label, options))
        return FactorySource(factory, options)
    is_agent = any(kind.accepts(thing) for kind in plugins.find("sources").values())
    if not is_agent and callable(thing) and not isinstance(thing, type) and not _required_parameters(thing):
        thing = _made(thing, label)
    return _wrapped(thing, label, options)


def _wrapped(thing: object, label: str, options: Options) -> Source:
    kinds = plugins.find("sources")
    for kind in kinds.values():
        if kind.accepts(thing):
            return kind(thing, options)
    raise SetupError(
        f"target {label!r} is a {type(thing).__name__}, which no installed source takes ({', '.join(sorted(kinds))}); "
        "an async generator function `async def agent(messages, ctx)` always works"
    )


def _takes_messages(function: Any) -> bool:
    """Whether it can be called as an agent is, with messages and a context: if not, it is a factory."""
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        return bool(_required_parameters(function))
    except ValueError:  # it does not say
        return True
    return True


def _made(factory: Callable[[], object], label: str) -> object:
    try:
        return factory()
    except Exception as error:
        raise SetupError(f"target {label!r} cannot be made: {type(error).__name__}: {error}") from error


def _is_agent(thing: object) -> bool:
    return any(kind.accepts(thing) for kind in plugins.find("sources").values())


def _required_parameters(function: Any) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some of Python's own functions do not say
        return ["?"]
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.default is p.empty and p.kind not in variadic]


def _load_module(name: str, target: str) -> ModuleType:
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    return _importing(target, name, lambda: importlib.import_module(name))


def _load_file(path: Path, target: str) -> ModuleType:
    if not path.is_file():
        raise SetupError(f"target {target!r}: there is no file {path}")
    folder = str(path.resolve().parent)
    if folder not in sys.path:  # so that it finds its neighbours
        sys.path.insert(0, folder)
    # A file may be called like a module that is there already (code.py, test.py), so it gets a name of its own. Several
    # agents of one file share one module, and with it what it keeps.
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
            del sys.modules[name]  # half a module is none
            raise
        return module

    return _importing(target, name, load)


def _importing(target: str, name: str, load: Callable[[], ModuleType]) -> ModuleType:
    """Import, and say in one line what went wrong if it does not work."""
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
