"""Executor for code agents that runs their code in a sandbox and their tools in the server.

It behaves like smolagents' LocalPythonExecutor: output is reported while code runs, variables exist between steps, and
errors have the same texts. Stop ends running code at once.
"""

# pyright: reportMissingTypeStubs=false

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from smolagents.local_python_executor import CodeOutput, ExecutionTimeoutError, InterpreterError, LocalPythonExecutor

from limelight.errors import LimelightError
from limelight.json_values import safe_text
from limelight.sandbox.message_framing import InvalidFrame, Message
from limelight.sandbox.process import WorkerLost, WorkerProcess
from limelight.sandbox.sandbox import Sandbox
from limelight.sandbox.value_encoding import NotEncodable, decode, encode
from limelight.sandbox.worker_messages import Call, Error, Output, Ready, Result
from limelight.sources.base import CURRENT
from limelight.sources.image_budget import ImageLease, separate_lease
from limelight.sources.smolagents.reports import ANSWER
from limelight.sources.thread_bridge import ThreadCancelled

POLL_SECONDS = 0.02
"""Interval at which running code is checked for a cancellation and for its time limit."""
GRACE_SECONDS = 0.08
"""How long cancelled code may take to end. After that its sandbox is killed and its variables are lost."""
START_SECONDS = 60.0
MAX_CALLS = 32
"""How many tools the code of an agent may call at the same time."""
TOOL_ATTRIBUTES = ("name", "description", "inputs", "output_type")
"""Attributes of a tool that code in the sandbox may read."""
LOST_VARIABLES = "The sandbox of the code was ended. All variables and imports of earlier code are gone."


class SandboxedExecutor:
    """Code executor of one conversation.

    Its worker (the sandboxed process) starts with the first turn, and again after it was killed.
    """

    def __init__(self, sandbox: Sandbox, executor: LocalPythonExecutor) -> None:
        """Create an executor with the imports, limits and functions of the agent's own executor."""
        self._sandbox = sandbox
        self._local: Any = executor
        self.state: dict[str, Any] = {}
        """Where smolagents looks for the printed text (`_print_outputs`) after an error."""
        self._tools: dict[str, Callable[..., Any]] = {}
        self._variables: dict[str, Any] = {}
        self._worker: WorkerProcess | None = None
        self._is_ready = False
        self._has_run = False
        self._is_paused = False
        self.is_lost = False
        """Whether the variables of earlier code are lost, because the worker was killed."""
        self._on_print: Callable[[str], None] = _ignore
        self._is_cancelled: Callable[[], bool] = bool
        self._images = separate_lease()

    def observe(self, is_cancelled: Callable[[], bool], on_print: Callable[[str], None], images: ImageLease) -> None:
        """Set the functions that return whether the run was stopped, and that receive each printed text.

        `images` are the pixels of the images that the run has decoded.
        """
        self._is_cancelled, self._on_print, self._images = is_cancelled, on_print, images

    def send_tools(self, tools: Mapping[str, Any]) -> None:
        """Set the tools that code may call, and start the worker while the model writes its first code."""
        self._tools = {**self._local.additional_functions, **tools}
        self._resume()
        self._start()
        self._configure()

    def send_variables(self, variables: dict[str, Any]) -> None:
        self._variables = variables
        if self._worker is not None:
            self._resume()
            self._send_variables()

    def copy(self) -> "SandboxedExecutor":
        """Return an executor with the same settings, but without variables."""
        return SandboxedExecutor(self._sandbox, self._local)

    @property
    def has_worker(self) -> bool:
        return self._worker is not None

    def pause(self) -> None:
        """Pause the worker until the next turn, because threads that code has started would continue."""
        worker = self._worker
        if worker is not None and self._has_run:
            self._is_paused = True
            worker.pause()

    def _resume(self) -> None:
        worker = self._worker
        if worker is not None and self._is_paused:
            self._is_paused = False
            worker.resume()

    def cleanup(self) -> None:
        """Kill the sandboxed process that runs the agent's code, if it runs."""
        worker, self._worker = self._worker, None
        self.is_lost = self.is_lost or self._has_run
        self._is_ready = self._has_run = self._is_paused = False
        if worker is not None:
            worker.kill()

    def __call__(self, code: str) -> CodeOutput:
        """Run code in the sandbox. Raises InterpreterError, ExecutionTimeoutError or ThreadCancelled."""
        if self._worker is None:
            self._start()
            self._configure()
        self._resume()
        self.state["_print_outputs"] = ""
        execution = CodeExecution(self._ready_worker(), self._tools, self._is_cancelled, self._print, self._images)
        had_variables, self._has_run, self.is_lost = self._has_run, True, False
        try:
            return execution.run(code, self._local.timeout_seconds)
        except WorkerLost as error:
            self.cleanup()
            if self._is_cancelled():
                raise ThreadCancelled from error
            raise InterpreterError(f"{error}. {LOST_VARIABLES if had_variables else ''}".strip()) from error
        finally:
            if execution.worker_is_lost:
                self.cleanup()
            self.state["_print_outputs"] = execution.logs or self.state["_print_outputs"]

    def _print(self, text: str) -> None:
        room = self._local.max_print_outputs_length - len(self.state["_print_outputs"])
        self.state["_print_outputs"] += text[: max(0, room)]
        self._on_print(text)

    def _start(self) -> None:
        if self._worker is None:
            context = CURRENT.get()
            assert context is not None, "code of an agent runs in a turn"
            self._worker = self._sandbox.start_worker(context.workspace, context.user.user_id)
            self._send_variables()

    def _configure(self) -> None:
        tools = [{"name": name, "attributes": encode(_attributes(tool))} for name, tool in self._tools.items()]
        self._send(
            {
                "type": "configure",
                "imports": self._local.authorized_imports,
                "max_print": self._local.max_print_outputs_length,
                "tools": tools,
                "plain_final_answer": type(self._tools.get(ANSWER)).__name__ == "FinalAnswerTool",
            }
        )

    def _send_variables(self) -> None:
        if self._variables:
            sent = {name: _encoded(value) for name, value in self._variables.items()}
            self._send({"type": "variables", "value": ["dict", [[name, value] for name, value in sent.items()]]})

    def _send(self, message: Message) -> None:
        assert self._worker is not None
        try:
            self._worker.send(message)
        except WorkerLost:
            self.cleanup()  # the next code starts another one, and reports what is wrong with it

    def _ready_worker(self) -> WorkerProcess:
        """Return the worker once it is ready. Raises InterpreterError if it does not start."""
        worker, deadline = self._worker, time.monotonic() + START_SECONDS
        try:
            while worker is not None and not self._is_ready:
                if self._is_cancelled():
                    raise ThreadCancelled
                message = worker.receive(POLL_SECONDS)
                self._is_ready = isinstance(message, Ready)
                if time.monotonic() > deadline:
                    raise WorkerLost(f"the sandbox was not ready within {START_SECONDS:g} seconds")
        except WorkerLost as error:
            self.cleanup()
            raise InterpreterError(f"code cannot run: {error}") from error
        if worker is None:
            raise InterpreterError("code cannot run: its sandbox could not be started")
        return worker


class CodeExecution:
    """One execution of code in a sandboxed worker process, with the tool calls that the code makes."""

    def __init__(
        self,
        worker: WorkerProcess,
        tools: Mapping[str, Callable[..., Any]],
        is_cancelled: Callable[[], bool],
        on_print: Callable[[str], None],
        images: ImageLease,
    ) -> None:
        self.logs = ""
        """All text that the code printed, possibly truncated; set once the code has ended."""
        self.worker_is_lost = False
        self._worker = worker
        self._tools = tools
        self._is_cancelled = is_cancelled
        self._on_print = on_print
        self._images = images
        self._lock = threading.Lock()
        self._calls = 0
        """The number of tools that are running for the code."""
        self._is_over = False
        """Whether the code has ended, so that results of tools that still run have no receiver."""
        self._fatal: BaseException | None = None
        """An exception of a tool that must end the turn instead of reaching the code, such as SystemExit."""

    def run(self, code: str, timeout_seconds: float | None) -> CodeOutput:
        """Run code until it ends, is cancelled or exceeds its time limit, which excludes tool calls."""
        try:
            return self._run(code, timeout_seconds)
        finally:
            self._is_over = True

    def _run(self, code: str, timeout_seconds: float | None) -> CodeOutput:
        self._worker.send({"type": "run", "code": code})
        spent, before = 0.0, time.monotonic()
        while True:
            if (end := self._receive()) is not None:
                return self._output(end)
            now = time.monotonic()
            spent, before = spent + (0.0 if self._calls else now - before), now
            if self._is_cancelled():
                self._cancel()
                raise ThreadCancelled
            if self._fatal is not None:
                self._cancel()
                raise self._fatal
            if timeout_seconds is not None and spent > timeout_seconds:
                self._cancel()
                raise ExecutionTimeoutError(
                    f"Code execution exceeded the maximum execution time of {timeout_seconds} seconds"
                    + (f". {LOST_VARIABLES}" if self.worker_is_lost else "")
                )

    def _receive(self) -> Result | Error | None:
        """Handle the next message of the sandboxed process. Return it if it ends the execution."""
        match message := self._worker.receive(POLL_SECONDS):
            case Output():
                self._on_print(safe_text(message.text))
            case Call():
                self._start_call(message)
            case Result() | Error():
                return message
            case Ready():
                self._worker.kill()
                raise WorkerLost("the sandbox has started a second time")
            case None:
                pass
        return None

    def _output(self, end: Result | Error) -> CodeOutput:
        try:
            self.logs = safe_text(decode(end.logs))
            value = decode(end.message if isinstance(end, Error) else end.value, admit_pixels=self._admit_pixels)
        except ValueError as error:
            raise InterpreterError(f"the output of the code cannot be read: {error}") from error
        if isinstance(end, Error):
            raise InterpreterError(safe_text(value))
        return CodeOutput(output=value, logs=self.logs, is_final_answer=end.is_final_answer)

    def _admit_pixels(self, pixels: int) -> None:
        """Count an image of the code before it is decoded. Raises ValueError if the run has too many pixels."""
        try:
            is_admitted = self._images.reserve(pixels)
        except LimelightError as error:
            raise ValueError(error.detail) from error
        if not is_admitted:
            raise ValueError(f"{pixels:,} pixels are too many, together with the other images of this run")

    def _cancel(self) -> None:
        """Ask the running code to end, and kill its sandboxed process if it does not."""
        deadline = time.monotonic() + GRACE_SECONDS
        try:
            self._worker.send({"type": "cancel"})
            while time.monotonic() < deadline:
                message = self._worker.receive(GRACE_SECONDS / 4)
                if isinstance(message, Result | Error):
                    return
        except WorkerLost:
            pass
        self._worker.kill()
        self.worker_is_lost = True

    def _start_call(self, call: Call) -> None:
        """Run a tool in its own thread, because code may call several tools at once."""
        with self._lock:
            self._calls += 1
            is_too_many = self._calls > MAX_CALLS
        if is_too_many:
            self._reply(call, {"error": "RuntimeError", "message": f"more than {MAX_CALLS} tools run"})
            return
        threading.Thread(target=self._call, args=(call,), name="limelight-tool-of-code", daemon=True).start()

    def _call(self, call: Call) -> None:
        try:
            value = self._run_tool(call)
        except ThreadCancelled:
            return  # the thread of the run notices by itself
        except Exception as error:
            self._reply(call, {"error": type(error).__name__, "message": safe_text(error)})
        except BaseException as error:
            self._fatal = error
        else:
            self._reply(call, {"value": _encoded(value)})

    def _run_tool(self, call: Call) -> Any:
        tool = self._tools.get(call.name)
        if tool is None:
            raise NameError(f"there is no tool {call.name!r}")
        args, kwargs = (decode(part, admit_pixels=self._admit_pixels) for part in call.arguments)
        return tool(*args, **kwargs)

    def _reply(self, call: Call, reply: Message) -> None:
        with self._lock:
            self._calls -= 1
        if self._is_over:  # the worker may be paused, and would not read
            return
        with suppress(WorkerLost):  # the thread of the run notices by itself
            try:
                self._worker.send({"type": "reply", "id": call.id, **reply})
            except InvalidFrame as error:
                too_large = {"error": "ValueError", "message": f"the result cannot be sent to the sandbox: {error}"}
                self._worker.send({"type": "reply", "id": call.id, **too_large})


def _attributes(tool: Any) -> dict[str, Any]:
    return {name: getattr(tool, name) for name in TOOL_ATTRIBUTES if hasattr(tool, name)}


def _encoded(value: Any) -> Any:
    """Encode a value for the sandboxed process. A value that cannot be encoded becomes text."""
    try:
        return encode(value, with_pickle=True)
    except NotEncodable:
        return safe_text(value)


def _ignore(_: str) -> None:
    pass
