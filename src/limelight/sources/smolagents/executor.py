"""Observes code that an agent runs: its output, the tools that it calls, and its end.

The interpreter runs code in a thread without the caller's contextvars, so the context is passed on here. Of an executor
other than smolagents' own, such as one in a container, only the end is observed.
"""

# pyright: reportMissingTypeStubs=false

import copy
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import Context, copy_context
from typing import Any

from smolagents.local_python_executor import LocalPythonExecutor, PrintContainer

from limelight.sources.smolagents.files import result_of
from limelight.sources.smolagents.model import encodable
from limelight.sources.smolagents.signals import (
    ANSWER,
    CODE,
    CURRENT_CALL,
    NO_RESULT,
    ApprovalRejected,
    CallEnded,
    CallOutput,
    CallReady,
    Observer,
    error_text,
    named_error_text,
)
from limelight.sources.threads import ThreadCancelled
from limelight.sources.values import ToolResult

TOOL_ATTRIBUTES = ("name", "description", "inputs", "output_type")
"""The attributes of a tool that code may read."""


class ObservedState(dict[str, Any]):
    """The variables of a LocalPythonExecutor, which report prints and let a stopped run end between two operations.

    smolagents keeps the printed text and the count of operations among the variables and sets both anew for each piece
    of code; that is where they are replaced. Functions that code defines refer to this dict, so it lives as long as the
    conversation.
    """

    _before_operation: Callable[[], None] | None = None
    _on_print: Callable[[str], None] | None = None

    def observe(self, before_operation: Callable[[], None], on_print: Callable[[str], None]) -> None:
        """Call these functions from now on, before every operation and with each printed text."""
        self._before_operation, self._on_print = before_operation, on_print

    def __setitem__(self, name: str, value: Any) -> None:
        if name == "_print_outputs" and type(value) is PrintContainer and self._on_print is not None:
            value = _ObservedPrints(self._on_print)
        elif name == "_operations_count" and type(value) is dict and self._before_operation is not None:
            value = _ObservedCount(self._before_operation)
        super().__setitem__(name, value)


class _ObservedPrints(PrintContainer):
    """The text that code has printed."""

    def __init__(self, on_print: Callable[[str], None]) -> None:
        super().__init__()
        self.value: str = ""
        self._on_print = on_print

    def __iadd__(self, other: object) -> "_ObservedPrints":
        self.value += str(other)
        self._on_print(str(other))
        return self


class _ObservedCount(dict[str, int]):
    """The count of operations."""

    def __init__(self, before_operation: Callable[[], None]) -> None:
        super().__init__(counter=0)
        self._before_operation = before_operation

    def __setitem__(self, name: str, value: int) -> None:
        self._before_operation()
        super().__setitem__(name, value)


class ObservedExecutor:
    """Wraps an agent's executor for one turn."""

    def __init__(self, executor: Any, observer: Observer, agent_id: str, find_call: Callable[[str], int]) -> None:
        """`find_call` returns the call number of a piece of code that starts to run."""
        self._executor = executor
        self._observer = observer
        self._agent_id = agent_id
        self._find_call = find_call
        self._context: Context = copy_context()
        self._call_number = 0
        self._printed = False
        self._may_wait = False
        """Whether code may call a tool that needs an approval."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_executor":
            raise AttributeError(name)
        return getattr(self._executor, name)

    def send_tools(self, tools: dict[str, Any]) -> None:
        if isinstance(self._executor, LocalPythonExecutor):
            self._may_wait = self._observer.needs_approval(tools)
            tools = {name: tool if name == ANSWER else tool_for_code(tool, name, self) for name, tool in tools.items()}
        self._executor.send_tools(tools)

    def __call__(self, code: str) -> Any:
        """Run a piece of code."""
        self._observer.check_cancelled()
        self._call_number, self._printed = self._find_call(code), False
        self._context = copy_context()
        if isinstance(state := getattr(self._executor, "state", None), ObservedState):
            state.observe(self._observer.check_cancelled, self._emit_output)
        code = self._approved_code(code)
        started = time.perf_counter()
        try:
            with self._observer.running(CODE), self._without_timeout():
                output = self._executor(code)
        except ThreadCancelled:
            raise
        except BaseException as error:  # a tool may also exit
            self._emit_end(started, error=error_text(error))
            raise
        if output.logs and not self._printed:
            self._emit_output(output.logs)
        self._emit_end(started, NO_RESULT if output.is_final_answer else result_of(output.output, "output"))
        return output

    def call(self, tool: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a tool from the running code."""
        return self._context.copy().run(self._call, tool, name, args, kwargs)

    def _call(self, tool: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        number = self._observer.next_call_number()
        given = _named_arguments(tool, args, kwargs)
        self._observer.emit(CallReady(self._agent_id, number, name, given, inner=True))
        CURRENT_CALL.set(number)
        started = time.perf_counter()
        try:
            approved = self._observer.approved_args(self._agent_id, number, name, given)
            if approved is not given:
                args, kwargs = (), approved
            started = time.perf_counter()
            with self._observer.running(name, caller=CODE):
                output = encodable(tool(*args, **kwargs))
        except ThreadCancelled:
            raise
        except BaseException as error:
            text = str(error) if isinstance(error, ApprovalRejected) else named_error_text(error)
            self._emit_end(started, error=text, call_number=number)
            raise
        self._emit_end(started, result_of(output, name), call_number=number)
        return output

    @contextmanager
    def _without_timeout(self) -> Generator[None]:
        """Disable the timeout of the interpreter, half a minute, while a tool may wait for a person."""
        if not self._may_wait:
            yield
            return
        timeout, self._executor.timeout_seconds = self._executor.timeout_seconds, None
        try:
            yield
        finally:
            self._executor.timeout_seconds = timeout

    def _approved_code(self, code: str) -> str:
        given = {"code": code}
        try:
            approved = self._observer.approved_args(self._agent_id, self._call_number, CODE, given)
        except ApprovalRejected as rejected:
            self._emit_end(time.perf_counter(), error=str(rejected))
            raise
        return code if approved is given else str(approved.get("code", code))

    def _emit_output(self, text: str) -> None:
        self._printed = True
        self._observer.emit(CallOutput(self._agent_id, self._call_number, text))

    def _emit_end(
        self, started: float, result: ToolResult = NO_RESULT, error: str | None = None, call_number: int = 0
    ) -> None:
        seconds = time.perf_counter() - started
        self._observer.emit(CallEnded(self._agent_id, call_number or self._call_number, result, error, seconds))


def tool_for_code(tool: Any, name: str, executor: ObservedExecutor) -> Callable[..., Any]:
    """A tool, or a managed agent, that code can call.

    It is a function, because code could read the attributes of an object and so call the tool without an approval.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        return executor.call(tool, name, args, kwargs)

    call.__name__ = name
    for attribute in TOOL_ATTRIBUTES:
        if hasattr(tool, attribute):
            setattr(call, attribute, copy.deepcopy(getattr(tool, attribute)))
    return call


def _named_arguments(tool: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments by name; those without a name by position."""
    names = list(getattr(tool, "inputs", None) or ())
    names += [f"argument_{number}" for number in range(len(names) + 1, len(args) + 1)]
    return dict(zip(names, args, strict=False)) | kwargs
