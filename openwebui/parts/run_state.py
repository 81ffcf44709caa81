"""The state of a run, built from its frames: tool calls, sub-agents and token usage."""

import contextlib
import json
from typing import NamedTuple
from urllib.parse import quote, unquote

from openwebui.parts.frames import Frame, Json, as_object

OUTPUT_CHARS = 50_000
"""Number of characters that are stored of the beginning of a tool's output, and of its end."""
OUTPUT_LINE_CHARS = 200


class CallKey(NamedTuple):
    """The id of a call's output item. It contains the call's original name and id, which the next turn needs."""

    run_id: str
    depth: int
    name: str
    tool_id: str

    def __str__(self) -> str:
        parts = (self.run_id, str(self.depth), self.name, self.tool_id)
        return ".".join(quote(part, safe="", errors="replace").replace(".", "%2E") for part in parts)

    @classmethod
    def parse(cls, text: str) -> "CallKey | None":
        parts = [unquote(part) for part in text.split(".")]
        return cls(parts[0], int(parts[1]), parts[2], parts[3]) if len(parts) == 4 and parts[1].isdecimal() else None


class ToolOutput:
    """The output of a tool, in bounded memory: its beginning, its end, and its last line."""

    def __init__(self) -> None:
        self.last_line = ""
        self._open_line = ""
        self._head: list[str] = []
        self._head_room = OUTPUT_CHARS
        self._tail: list[str] = []
        self._tail_chars = 0
        self._omitted = 0

    def add(self, text: str) -> None:
        self._read_lines(text)
        if self._head_room:
            self._head.append(text[: self._head_room])
        rest = text[self._head_room :]
        self._head_room -= len(text) - len(rest)
        self._tail.append(rest)
        self._tail_chars += len(rest)
        if self._tail_chars > 2 * OUTPUT_CHARS:
            self._trim_tail()

    @property
    def text(self) -> str:
        """Return the complete output, or its beginning and end with a note between them."""
        self._trim_tail()
        note = f"\n… ({self._omitted:,} characters are left out here)\n" if self._omitted else ""
        return f"{''.join(self._head)}{note}{''.join(self._tail)}"

    def is_in(self, result: str) -> bool:
        """Whether the text of a result contains this output."""
        self._trim_tail()
        head, tail = "".join(self._head), "".join(self._tail)
        ends = [head, tail] if self._omitted else [head + tail]
        return all(end.strip() in result for end in ends)

    def _read_lines(self, text: str) -> None:
        lines = (self._open_line + text).splitlines(keepends=True)
        self.last_line = next((line.strip() for line in reversed(lines) if line.strip()), self.last_line)[
            :OUTPUT_LINE_CHARS
        ]
        is_open = bool(lines) and lines[-1].splitlines() == lines[-1:]
        self._open_line = lines[-1][:OUTPUT_LINE_CHARS] if is_open else ""

    def _trim_tail(self) -> None:
        tail = "".join(self._tail)
        self._tail = [tail[-OUTPUT_CHARS:]]
        self._omitted += len(tail) - len(self._tail[0])
        self._tail_chars = len(self._tail[0])


class ToolCall:
    """The state of one tool call."""

    def __init__(self, frame: Frame, agent_path: str) -> None:
        self.tool_id = frame.text("tool_id")
        self.name = frame.text("name") or "unknown"
        self.agent_id = frame.text("agent_id")
        self.depth = frame.number("agent_depth")
        self.agent_path = agent_path
        self.args = frame.text("args")
        self.has_args = "args" in frame.data
        self.printed = ToolOutput()
        self.result = ""
        self.error: str | None = None
        self.outcome = ""
        self.result_seen = True
        self.done = False

    def finish(self, result: str, error: str | None, *, outcome: str = "", result_seen: bool = True) -> None:
        self.result, self.error, self.done = result, error, True
        self.outcome, self.result_seen = outcome, result_seen

    @property
    def failed(self) -> bool:
        """Whether the call has an error and was neither stopped nor rejected."""
        return self.error is not None and not self.outcome

    def key(self, run_id: str) -> str:
        return str(CallKey(run_id, self.depth, self.name, self.tool_id))

    @property
    def title(self) -> str:
        """The name of the tool, preceded by the sub-agent that called it."""
        if self.agent_path:
            return f"{self.agent_path} › {self.name}"
        return f"{'↳ ' * self.depth}{self.name}"

    @property
    def output(self) -> str:
        """The result, preceded by the printed output unless the result contains it."""
        if not self.printed.last_line or self.printed.is_in(self.result):
            return self.result
        return f"{self.printed.text.rstrip()}\n\n{self.result}".rstrip()

    @property
    def args_are_complete(self) -> bool:
        return self._parse_args() is not None

    @property
    def parameters(self) -> Json:
        """The arguments as a JSON object. Other arguments are put into an object as text."""
        args = self._parse_args()
        return {"arguments": self.args} if args is None else args

    def _parse_args(self) -> Json | None:
        if self.args.rstrip().endswith("}"):
            with contextlib.suppress(ValueError):
                return as_object(json.loads(self.args))
        return None if self.args.strip() else {}


def finished_title(call: ToolCall, title: str) -> str:
    """Return the title of a finished call. It marks a missing result, because Open WebUI shows a check mark."""
    return outcome_title(title, call.outcome) if call.result_seen else f"{title} · no result seen"


def outcome_title(title: str, outcome: str) -> str:
    """Return the title of a call or sub-agent, which says if it was stopped or rejected."""
    return f"{title} · {outcome}" if outcome else title


class SubAgent:
    """The state of one sub-agent. `tool_id` is the call that started it, or ""."""

    def __init__(self, frame: Frame, parent_path: str) -> None:
        self.agent_id = frame.text("agent_id")
        self.parent_id = frame.text("parent_id")
        self.name = " · ".join(filter(None, (frame.text("name") or "sub-agent", frame.text("title"))))
        self.path = f"{parent_path} › {self.name}" if parent_path else self.name
        self.depth = frame.number("depth") or 1
        self.tool_id = frame.text("tool_id")
        self.call_count = 0
        self.text = ""
        self.error: str | None = None
        self.outcome = ""

    @property
    def failed(self) -> bool:
        """Whether the sub-agent has an error and was not stopped."""
        return self.error is not None and not self.outcome


class RunState:
    """The calls, sub-agents and token usage of a run. It must get each frame before the displays that read it."""

    def __init__(self) -> None:
        self.calls: dict[str, ToolCall] = {}
        self.agents: dict[str, SubAgent] = {}
        self.input_tokens = 0
        self.output_tokens = 0

    def feed(self, frame: Frame) -> None:
        match frame.type:
            case "tool_start":
                self._add_call(frame)
            case "tool_args" if (call := self.call(frame)) and not call.has_args:
                call.args += frame.text("content")
            case "tool_output" if call := self.call(frame):
                call.printed.add(frame.text("content"))
            case "tool_end":
                call = self.call(frame) or self._add_call(frame)
                result_seen = frame.data.get("result_seen") is not False
                error, outcome = frame.data.get("error"), frame.text("outcome")
                call.finish(frame.text("result"), error, outcome=outcome, result_seen=result_seen)
            case "approval" if (call := self.call(frame)) and frame.data.get("state") == "edit":
                call.args, call.has_args = frame.text("args"), True
            case "agent_start":
                parent = self.agents.get(frame.text("parent_id"))
                self.agents[frame.text("agent_id")] = SubAgent(frame, parent.path if parent else "")
            case "agent_end" if agent := self.agents.get(frame.text("agent_id")):
                agent.error, agent.outcome = frame.data.get("error"), frame.text("outcome")
            case "token" if agent := self.agents.get(frame.text("agent_id")):
                agent.text += frame.text("content")
            case "usage":
                self.input_tokens += frame.number("input_tokens")
                self.output_tokens += frame.number("output_tokens")
            case _:
                pass

    def call(self, frame: Frame) -> ToolCall | None:
        """Return the call that a frame belongs to, None if it is unknown."""
        return self.calls.get(frame.text("tool_id"))

    def agent_started_by(self, tool_id: str) -> SubAgent | None:
        """Return the sub-agent that a call has started, None without one."""
        return next((agent for agent in self.agents.values() if tool_id and agent.tool_id == tool_id), None)

    def ancestors(self, agent_id: str) -> list[str]:
        """Return the ids of a sub-agent and of all its parents, without the main agent."""
        agent_ids: list[str] = []
        while agent_id and agent_id not in agent_ids:
            agent_ids.append(agent_id)
            agent = self.agents.get(agent_id)
            agent_id = agent.parent_id if agent else ""
        return agent_ids

    def _add_call(self, frame: Frame) -> ToolCall:
        agent = self.agents.get(frame.text("agent_id"))
        call = self.calls[frame.text("tool_id")] = ToolCall(frame, agent.path if agent else "")
        if agent is not None:
            agent.call_count += 1
        return call
