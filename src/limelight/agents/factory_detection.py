"""Recognises agent factories: functions and context managers in a user's module that return or yield an agent.

A factory takes no arguments, or the `config` and the `runtime` of LangGraph's factories. Limelight opens it once, when
the server starts; what it has opened is closed when the server stops. `sources.factory_source` runs it.
"""

import inspect
from collections.abc import Callable
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

CONFIG_TYPES = ("RunnableConfig",)
RUNTIME_TYPES = ("ServerRuntime", "Runtime")


def factory_call(target: object) -> Callable[[], Any] | None:
    """Return a function without parameters that calls a factory; None if the target is not a factory.

    An agent function takes messages and a context. A coroutine function or a generator function that can be called with
    two arguments is such an agent, unless its parameters are those of a factory.
    """
    if not callable(target) or isinstance(target, type):
        return None
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):  # some built-in functions have no signature
        return None
    arguments: dict[str, Any] = {}
    positional: list[Any] = []
    for parameter in signature.parameters.values():
        argument = _argument(parameter)
        if argument is None:
            if parameter.default is parameter.empty and parameter.kind not in _VARIADIC:
                return None
        elif parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(argument)
        else:
            arguments[parameter.name] = argument
    if not (arguments or positional) and is_agent_kind(target) and _takes_messages(signature):
        return None
    return partial(target, *positional, **arguments)


_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _argument(parameter: inspect.Parameter) -> Any:
    """Return the value to pass for a parameter of a factory; None if the parameter is unknown or optional."""
    type_name = _type_name(parameter.annotation)
    is_required = parameter.default is parameter.empty
    if parameter.kind in _VARIADIC:
        return None
    if type_name in CONFIG_TYPES or (parameter.name == "config" and (is_required or parameter.default is None)):
        return {"configurable": {}, "metadata": {}, "tags": []}
    if type_name in RUNTIME_TYPES or (parameter.name == "runtime" and is_required):
        return _runtime()
    return None


def _type_name(annotation: Any) -> str:
    """Return the name of the type in an annotation, without its module and its type parameters."""
    origin = getattr(annotation, "__origin__", annotation)
    name = annotation if isinstance(annotation, str) else getattr(origin, "__name__", "")
    return str(name).partition("[")[0].rpartition(".")[2].strip("'\" ")


def _runtime() -> Any:
    """Return LangGraph's runtime object for factories, without a user, a store and a context."""
    try:
        from langgraph_sdk import runtime
    except ImportError:
        return SimpleNamespace(access_context="threads.create_run", user=None, store=None, execution_runtime=None)
    execution: Any = getattr(runtime, "_ExecutionRuntime")  # noqa: B009
    return execution(access_context="threads.create_run", user=None, store=None)


def is_agent_kind(target: object) -> bool:
    """Whether the target is an async generator, coroutine or generator function, which can be an agent itself."""
    kinds = (inspect.isasyncgenfunction, inspect.iscoroutinefunction, inspect.isgeneratorfunction)
    return any(is_kind(target) for is_kind in kinds)


def takes_messages(target: Callable[..., Any]) -> bool:
    """Whether an agent function accepts two arguments: messages and a context."""
    return _takes_messages(inspect.signature(target))


def _takes_messages(signature: inspect.Signature) -> bool:
    try:
        signature.bind(None, None)
    except TypeError:
        return False
    return True


def needs_event_loop(target: object) -> bool:
    """Whether a factory must be called in the event loop, because it is async or yields the agent."""
    return is_agent_kind(inspect.unwrap(cast("Callable[..., Any]", target)))


def needs_opening(result: object) -> bool:
    """Whether a factory's return value must still be awaited, or entered as a context manager, to get the agent."""
    return (
        inspect.isawaitable(result)
        or inspect.isasyncgen(result)
        or inspect.isgenerator(result)
        or isinstance(result, AbstractAsyncContextManager | AbstractContextManager)
    )


async def open_agent(result: Any, stack: AsyncExitStack, is_agent: Callable[[object], bool]) -> object:
    """Return the agent in a factory's return value, after awaiting it or entering it as a context manager if necessary.

    Context managers are entered on the stack, which closes them. A generator counts as one: it yields the agent, and
    the rest of it runs when the stack is closed.
    """
    result = await _awaited(result)
    if is_agent(result) or not needs_opening(result):
        return result
    return await _awaited(await _entered(result, stack))


async def _awaited(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result


async def _entered(result: Any, stack: AsyncExitStack) -> Any:
    if inspect.isasyncgen(result):
        result = asynccontextmanager(partial(_same, result))()
    elif inspect.isgenerator(result):
        result = contextmanager(partial(_same, result))()
    if isinstance(result, AbstractAsyncContextManager):
        return await stack.enter_async_context(cast("AbstractAsyncContextManager[object]", result))
    return stack.enter_context(cast("AbstractContextManager[object]", result))


def _same(value: Any) -> Any:
    return value
