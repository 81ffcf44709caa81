"""Observes the code that an agent runs: its output, the tools that it calls, and its end.

Code runs in a sandbox or in smolagents' LocalPythonExecutor. Both run tools in threads without the caller's
contextvars, so the context is passed on here. With any other executor, such as one in a container, only the end and the
complete output are observed.
"""

# pyright: reportMissingTypeStubs=false

import copy
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import Context, copy_context
from typing import Any, NamedTuple

from smolagents.local_python_executor import LocalPythonExecutor

from limelight.sandbox.interpreter import ObservedState
from limelight.sources.smolagents.files import result_of
from limelight.sources.smolagents.model_wrapper import encodable
from limelight.sources.smolagents.reports import (
    ANSWER,
    CODE,
    CURRENT_CALL,
    NO_RESULT,
    CallEnded,
    CallOutput,
    CallReady,
    Observer,
    error_text,
    named_error_text,
)
from limelight.sources.smolagents.sandboxed_executor import TOOL_ATTRIBUTES, SandboxedExecutor
from limelight.sources.thread_bridge import ThreadCancelled
from limelight.sources.tool_results import ToolResult


class ObservedCall(NamedTuple):
    """A tool call or code execution that is about to run."""

    agent_id: str
    call_number: int
    name: str
    caller: str = ""
    """The name of the tool that makes the call, such as that for code; "" if the model makes the call."""

    def run(
        self,
        observer: Observer,
        args: Any,
        run: Callable[[Any], Any],
        *,
        result: Callable[[Any, str], ToolResult] = result_of,
        describe: Callable[[BaseException], str] = error_text,
    ) -> Any:
        """Call `run` with the arguments, after an approval if the tool needs one, and report the end of the call.

        The end is emitted immediately, even if smolagents discards the output.
        """
        token = CURRENT_CALL.set(self.call_number)
        started: float | None = None
        """When the tool was started; None while the call waits for a person, which its duration excludes."""
        try:
            approved = observer.approved_args(self.agent_id, self.call_number, self.name, args)
            started = time.perf_counter()
            with observer.running(self.name, self.caller):
                output = encodable(run(approved))
        except ThreadCancelled:
            raise
        except BaseException as error:  # including SystemExit
            seconds = 0.0 if started is None else time.perf_counter() - started
            observer.emit(CallEnded(self.agent_id, self.call_number, error=describe(error), seconds=seconds))
            raise
        finally:
            CURRENT_CALL.reset(token)
        seconds = time.perf_counter() - started
        observer.emit(CallEnded(self.agent_id, self.call_number, result(output, self.name), seconds=seconds))
        return output


class ObservedExecutor:
    """Wraps an agent's code executor for one turn, and emits reports about the code that it runs."""

    def __init__(self, executor: Any, observer: Observer, agent_id: str, find_call: Callable[[str], int]) -> None:
        """Wrap an executor; `find_call` returns the call number of code that is about to run."""
        self._executor = executor
        self._observer = observer
        self._agent_id = agent_id
        self._find_call = find_call
        self._context: Context = copy_context()
        self._call_number = 0
        self._printed = False
        self._may_wait = False
        """Whether the code can call a tool that needs an approval, and so wait for a person."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_executor":
            raise AttributeError(name)
        return getattr(self._executor, name)

    def send_tools(self, tools: dict[str, Any]) -> None:
        if isinstance(self._executor, LocalPythonExecutor | SandboxedExecutor):
            self._may_wait = self._observer.needs_approval(tools)
            tools = {name: tool if name == ANSWER else tool_for_code(tool, name, self) for name, tool in tools.items()}
        self._executor.send_tools(tools)

    def __call__(self, code: str) -> Any:
        """Run code of the agent, and emit reports about its output, its tool calls and its end."""
        self._observer.check_cancelled()
        self._call_number, self._printed = self._find_call(code), False
        self._context = copy_context()
        if isinstance(self._executor, SandboxedExecutor):
            self._executor.observe(lambda: self._observer.cancelled, self._emit_output, self._observer.image_lease)
        elif isinstance(state := getattr(self._executor, "state", None), ObservedState):
            state.observe(self._observer.check_cancelled, self._emit_output)
        call = ObservedCall(self._agent_id, self._call_number, CODE)
        return call.run(self._observer, {"code": code}, self._run_code, result=self._code_result)

    def _run_code(self, args: dict[str, Any]) -> Any:
        with self._without_timeout():
            return self._executor(str(args.get("code", "")))

    def _code_result(self, output: Any, _: str) -> ToolResult:
        if output.logs and not self._printed:
            self._emit_output(output.logs)
        return NO_RESULT if output.is_final_answer else result_of(output.output, "output")

    def call(self, tool: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a tool for the running code, in the context of the run, which smolagents' own threads lack."""
        return self._context.copy().run(self._call, tool, name, args, kwargs)

    def _call(self, tool: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        number = self._observer.next_call_number()
        given = _named_arguments(tool, args, kwargs)
        self._observer.emit(CallReady(self._agent_id, number, name, given, inner=True))

        def run(approved: dict[str, Any]) -> Any:
            return tool(*args, **kwargs) if approved is given else tool(**approved)

        call = ObservedCall(self._agent_id, number, name, caller=CODE)
        return call.run(self._observer, given, run, describe=named_error_text)

    @contextmanager
    def _without_timeout(self) -> Generator[None]:
        """Disable the interpreter's timeout of 30 seconds if the code may have to wait for a person."""
        if not self._may_wait or isinstance(self._executor, SandboxedExecutor):  # which does not count tool calls
            yield
            return
        timeout, self._executor.timeout_seconds = self._executor.timeout_seconds, None
        try:
            yield
        finally:
            self._executor.timeout_seconds = timeout

    def _emit_output(self, text: str) -> None:
        self._printed = True
        self._observer.emit(CallOutput(self._agent_id, self._call_number, text))


def tool_for_code(tool: Any, name: str, executor: ObservedExecutor) -> Callable[..., Any]:
    """Return the function through which an agent's code calls a tool or a managed agent.

    An object would not be safe: code could read its attributes and call the tool without an approval.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        return executor.call(tool, name, args, kwargs)

    call.__name__ = name
    for attribute in TOOL_ATTRIBUTES:
        if hasattr(tool, attribute):
            setattr(call, attribute, copy.deepcopy(getattr(tool, attribute)))
    return call


def _named_arguments(tool: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return a call's arguments by name; a positional argument without a known name is named `argument_3`."""
    names = list(getattr(tool, "inputs", None) or ())
    names += [f"argument_{number}" for number in range(len(names) + 1, len(args) + 1)]
    return dict(zip(names, args, strict=False)) | kwargs
