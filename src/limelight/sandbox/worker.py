"""The program that runs the Python code of an agent in a sandbox, and exchanges messages with the server by pipes.

The server sends `configure`, `variables`, `run`, `reply` and `cancel`; the worker sends `ready`, `output`, `call` (of a
tool, which runs in the server), `result` and `error`. Code runs in smolagents' interpreter, whose variables exist until
the worker ends. The server trusts no message of a worker, because hostile code may control the worker.
"""

# pyright: reportMissingTypeStubs=false

import builtins
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from itertools import count
from queue import SimpleQueue
from typing import Any

from limelight.sandbox.confinement import confine, confine_files, end_with_parent, max_tasks
from limelight.sandbox.launch import read_arguments
from limelight.sandbox.message_framing import FrameReader, InvalidFrame, Message, encode_frame
from limelight.sandbox.supervisor import start_confined, temporary_excess
from limelight.sandbox.value_encoding import NotEncodable, decode, encode
from limelight.sandbox.workspace_size import WorkspaceWatch

READ_BYTES = 64 * 1024
FINAL_ANSWER = "final_answer"
MAX_TEXT = 1_000_000
"""Maximum length of the text that replaces a value of a type that cannot be sent."""
MAX_OUTPUT = 50_000
"""Maximum length of printed text in one message."""


class Cancelled(BaseException):
    """Raised in running code when the server cancels it. `except Exception` does not catch it."""


class Connection:
    """The pipes to the server. Any thread may send; one thread receives."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._lock = threading.Lock()
        self._numbers = count(1)
        self._calls: dict[int, Future[Message]] = {}
        self.requests: SimpleQueue[Message] = SimpleQueue()
        """The received messages that the interpreter has to handle."""
        self.cancelled = False
        """True once the server has cancelled the running code."""

    def send(self, message: Message) -> None:
        data = encode_frame(message)
        with self._lock:
            while data:
                data = data[os.write(self._outgoing, data) :]

    def receive_all(self) -> None:
        """Receive messages, and pass each to the thread that needs it. End the process when the pipe is closed."""
        reader = FrameReader()
        while data := os.read(self._incoming, READ_BYTES):
            for message in reader.feed(data):
                self._distribute(message)
        os._exit(0)

    def _distribute(self, message: Message) -> None:
        match message["type"]:
            case "reply":
                waiting = self._calls.pop(message["id"], None)
                if waiting is not None:
                    waiting.set_result(message)
            case "cancel":
                self.cancelled = True
                for waiting in [self._calls.pop(number) for number in list(self._calls)]:
                    waiting.set_exception(Cancelled())
            case _:
                self.requests.put(message)

    def call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a tool in the server and return its result. Raises the error of the tool."""
        self.check_cancelled()
        number = next(self._numbers)
        waiting = self._calls[number] = Future[Message]()
        arguments = [encode(list(args)), encode(kwargs)]
        self.send({"type": "call", "id": number, "name": name, "arguments": arguments})
        reply = waiting.result()
        if "error" in reply:
            raise remote_error(str(reply["error"]), str(reply["message"]))
        return decode(reply["value"], with_pickle=True)

    def check_cancelled(self) -> None:
        if self.cancelled:
            raise Cancelled


def remote_error(name: str, message: str) -> Exception:
    """Return an exception for the error of a tool: of the built-in class with this name, or else of a new class."""
    kind = getattr(builtins, name, None)
    if isinstance(kind, type) and issubclass(kind, Exception):
        try:
            return kind(message)
        except TypeError:  # UnicodeError and others need more arguments
            pass
    return type(name, (Exception,), {})(message)


class Interpreter:
    """smolagents' Python interpreter in the worker. Its variables exist until the worker ends."""

    def __init__(self, connection: Connection) -> None:
        from smolagents.local_python_executor import LocalPythonExecutor

        from limelight.sandbox.interpreter import ObservedState

        self._connection = connection
        self._executor: Any = LocalPythonExecutor([], timeout_seconds=None)
        self._executor.state = ObservedState({"__name__": "__main__"})
        self._executor.state.observe(connection.check_cancelled, self._print)

    def configure(self, message: Message) -> None:
        self._executor.authorized_imports = list(message["imports"])
        self._executor.max_print_outputs_length = message["max_print"]
        tools = {tool["name"]: self._tool(tool) for tool in message["tools"]}
        if message["plain_final_answer"]:
            tools[FINAL_ANSWER] = _same
        self._executor.send_tools(tools)

    def _tool(self, description: Message) -> Callable[..., Any]:
        name = str(description["name"])

        def call(*args: Any, **kwargs: Any) -> Any:
            return self._connection.call(name, args, kwargs)

        call.__name__ = name
        for attribute, value in decode(description["attributes"]).items():
            setattr(call, attribute, value)
        return call

    def set_variables(self, message: Message) -> None:
        self._executor.send_variables(decode(message["value"], with_pickle=True))

    def run(self, code: str) -> Message:
        """Run code, and return the message that describes its end."""
        self._connection.cancelled = False
        try:
            output = self._executor(code)
            return {
                "type": "result",
                "value": _encoded_output(output.output),
                "logs": encode(str(output.logs)),
                "is_final_answer": output.is_final_answer,
            }
        except BaseException as error:  # including SystemExit, which must not end the worker
            logs = str(self._executor.state.get("_print_outputs", ""))
            return failure(str(error), logs)

    def _print(self, text: str) -> None:
        for start in range(0, len(text), MAX_OUTPUT):
            self._connection.send({"type": "output", "text": text[start : start + MAX_OUTPUT]})


def failure(message: str, logs: str = "") -> Message:
    """Return the message that the code has failed."""
    return {"type": "error", "message": encode(message), "logs": encode(logs)}


def _same(answer: Any) -> Any:
    return answer


def _encoded_output(output: Any) -> Any:
    """Encode the output of code. A value that is too large, or of a type that cannot be sent, becomes text."""
    try:
        encoded = encode(output)
        encode_frame({"type": "result", "value": encoded})  # raises InvalidFrame if it is too large
    except (NotEncodable, InvalidFrame):
        return encode(str(output)[:MAX_TEXT])
    return encoded


def main(argv: list[str]) -> None:
    """Run the worker in a confined child process, and exit with its exit code or signal."""
    level, policy, _ = read_arguments(argv)
    if level != "bubblewrap":  # bubblewrap does this itself
        end_with_parent()
    if level == "none":
        os.chdir(policy.workspace)
        confine(level, policy, processes=False)
        confine_files(level, policy, processes=False)
        run()
    watch = WorkspaceWatch(policy.workspace, policy.limits.workspace_bytes)
    child = start_confined(level, policy, run, processes=False, max_tasks=max_tasks(policy, processes=False))
    watch.start()
    end_as(child.wait_for_end(lambda: temporary_excess(level) or watch.excess))


def end_as(status: int) -> None:
    """End this process with the exit code or the signal of another one."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(OSError):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)  # the first process of a namespace cannot signal itself


def run() -> None:
    """Handle the requests of the server until it closes the pipe."""
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    connection = Connection(incoming, outgoing)
    interpreter = Interpreter(connection)
    connection.send({"type": "ready"})
    os.dup2(nothing, 2)
    threading.Thread(target=connection.receive_all, daemon=True).start()
    while True:
        serve(connection, interpreter)


def serve(connection: Connection, interpreter: Interpreter) -> None:
    """Handle one request of the server."""
    message = connection.requests.get()
    match message["type"]:
        case "configure":
            interpreter.configure(message)
        case "variables":
            interpreter.set_variables(message)
        case "run":
            end = interpreter.run(str(message["code"]))
            try:
                connection.send(end)
            except (InvalidFrame, ValueError) as error:
                connection.send(failure(f"the output of the code cannot be sent: {error}"))
        case _:
            pass


if __name__ == "__main__":
    main(sys.argv[1:])
