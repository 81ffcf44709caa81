"""Code that runs, listened to: what it prints, the tools that it calls, its end.

The interpreter runs code in a thread to which it passes no context, so the context of the call is carried along here.
Where the interpreter is another one than smolagents' own (in a container, say), only the end is heard.
"""

# pyright: reportMissingTypeStubs=false

import copy
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import Context, copy_context
from typing import Any

from smolagents.local_python_executor import LocalPythonExecutor

from limelight.sources.smolagents.approvals import ANSWER, CODE, Rejected
from limelight.sources.smolagents.error_text import named, told
from limelight.sources.smolagents.executor_state import WatchedState
from limelight.sources.smolagents.managed_agents import SPAWNING
from limelight.sources.smolagents.observer import Observer
from limelight.sources.smolagents.outputs import outcome_of, sendable
from limelight.sources.smolagents.signals import NOTHING, CallEnded, CallMade, CallPrinted
from limelight.sources.threads import Left
from limelight.sources.values import Outcome

ABOUT = ("name", "description", "inputs", "output_type")
"""What code may know of a tool."""


class HeardExecutor:
    """Stands before an agent's executor for one turn."""

    def __init__(self, executor: Any, observer: Observer, agent_id: str, begins: Callable[[str], int]) -> None:
        self._executor = executor
        self._observer = observer
        self._agent_id = agent_id
        self._begins = begins
        self._context: Context = copy_context()
        self._ticket = 0
        self._printed = False
        self._may_wait = False
        """Whether code may call a tool that somebody has to be asked about."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_executor":
            raise AttributeError(name)
        return getattr(self._executor, name)

    def send_tools(self, tools: dict[str, Any]) -> None:
        if isinstance(self._executor, LocalPythonExecutor):
            self._may_wait = self._observer.asks_before(tools)
            tools = {
                name: tool if name == ANSWER else called_from_code(tool, name, self) for name, tool in tools.items()
            }
        self._executor.send_tools(tools)

    def __call__(self, code: str) -> Any:
        self._observer.check()
        self._ticket, self._printed = self._begins(code), False
        self._context = copy_context()
        if isinstance(state := getattr(self._executor, "state", None), WatchedState):
            state.watch(self._observer.check, self._hear)
        code = self._permitted(code)
        begun = time.perf_counter()
        try:
            with self._observer.works(CODE), self._without_clock():
                output = self._executor(code)
        except Left:
            raise
        except BaseException as error:  # also of a tool that exits
            self._end(begun, error=told(error))
            raise
        if output.logs and not self._printed:
            self._hear(output.logs)
        self._end(begun, NOTHING if output.is_final_answer else outcome_of(output.output, "output"))
        return output

    def call(self, tool: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A tool that the running code calls."""
        return self._context.copy().run(self._call, tool, name, args, kwargs)

    def _call(self, tool: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        ticket = self._observer.ticket()
        given = _named(tool, args, kwargs)
        self._observer.tell(CallMade(self._agent_id, ticket, name, given, inner=True))
        SPAWNING.set(ticket)
        begun = time.perf_counter()
        try:
            allowed = self._observer.permitted(self._agent_id, ticket, name, given)
            if allowed is not given:
                args, kwargs = (), allowed
            begun = time.perf_counter()
            with self._observer.works(name, caller=CODE):
                output = sendable(tool(*args, **kwargs))
        except Left:
            raise
        except BaseException as error:
            self._end(begun, error=str(error) if isinstance(error, Rejected) else named(error), ticket=ticket)
            raise
        self._end(begun, outcome_of(output, name), ticket=ticket)
        return output

    @contextmanager
    def _without_clock(self) -> Generator[None]:
        """The interpreter stops code after half a minute. People take longer, and what they allow is done by then."""
        if not self._may_wait:
            yield
            return
        clock, self._executor.timeout_seconds = self._executor.timeout_seconds, None
        try:
            yield
        finally:
            self._executor.timeout_seconds = clock

    def _permitted(self, code: str) -> str:
        given = {"code": code}
        try:
            allowed = self._observer.permitted(self._agent_id, self._ticket, CODE, given)
        except Rejected as rejected:
            self._end(time.perf_counter(), error=str(rejected))
            raise
        return code if allowed is given else str(allowed.get("code", code))

    def _hear(self, text: str) -> None:
        self._printed = True
        self._observer.tell(CallPrinted(self._agent_id, self._ticket, text))

    def _end(self, begun: float, outcome: Outcome = NOTHING, error: str | None = None, ticket: int = 0) -> None:
        seconds = time.perf_counter() - begun
        self._observer.tell(CallEnded(self._agent_id, ticket or self._ticket, outcome, error, seconds))


def called_from_code(tool: Any, name: str, executor: HeardExecutor) -> Callable[..., Any]:
    """A tool, or a managed agent, in the hands of code.

    A function and no object: code may look at what belongs to an object, and would get at the tool itself, past whoever
    is to be asked before it runs.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        return executor.call(tool, name, args, kwargs)

    call.__name__ = name
    for about in ABOUT:
        if hasattr(tool, about):
            setattr(call, about, copy.deepcopy(getattr(tool, about)))
    return call


def _named(tool: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments by their names; those that have none by their place."""
    names = list(getattr(tool, "inputs", None) or ())
    names += [f"argument_{number}" for number in range(len(names) + 1, len(args) + 1)]
    return dict(zip(names, args, strict=False)) | kwargs
