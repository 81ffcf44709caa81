"""What the frames so far have told: calls, sub-agents, tokens. All displays look things up here."""

import contextlib
import json

from openwebui.parts.frames import Frame
from openwebui.parts.tool_output import Printout
from openwebui.parts.types import Json, as_object


class Call:
    """One tool call so far."""

    def __init__(self, frame: Frame, who: str) -> None:
        self.tool_id = frame.text("tool_id")
        self.name = frame.text("name") or "unknown"
        self.agent_id = frame.text("agent_id")
        self.depth = frame.number("agent_depth")
        self.who = who
        self.args = frame.text("args")
        self.has_args = "args" in frame.data
        self.printed = Printout()
        self.result = ""
        self.error: str | None = None
        self.result_seen = True
        self.done = False

    def end(self, result: str, error: str | None, *, result_seen: bool = True) -> None:
        self.result, self.error, self.result_seen, self.done = result, error, result_seen, True

    @property
    def title(self) -> str:
        """Its name, behind that of the sub-agent that made it."""
        if self.who:
            return f"{self.who} › {self.name}"
        return f"{'↳ ' * self.depth}{self.name}"

    @property
    def output(self) -> str:
        """What came of it: the result, below what was printed if the result does not repeat it."""
        if not self.printed.last_line or self.printed.is_in(self.result):
            return self.result
        return f"{self.printed.text.rstrip()}\n\n{self.result}".rstrip()

    @property
    def args_are_whole(self) -> bool:
        return self._object() is not None

    @property
    def parameters(self) -> Json:
        found = self._object()
        return {"arguments": self.args} if found is None else found

    def _object(self) -> Json | None:
        if self.args.rstrip().endswith("}"):
            with contextlib.suppress(ValueError):
                return as_object(json.loads(self.args))
        return None if self.args.strip() else {}


def row_title(call: Call, title: str) -> str:
    """The title of a row. Open WebUI draws a check mark on every call without an error, so the title says the rest."""
    return title if call.result_seen else f"{title} · no result seen"


class Agent:
    """One sub-agent so far. `tool_id` is the call that started it, if one did."""

    def __init__(self, frame: Frame, path: str) -> None:
        self.agent_id = frame.text("agent_id")
        self.parent_id = frame.text("parent_id")
        self.name = frame.text("name") or "sub-agent"
        self.path = f"{path} › {self.name}" if path else self.name
        self.depth = frame.number("depth") or 1
        self.tool_id = frame.text("tool_id")
        self.calls = 0
        self.said = ""
        self.error: str | None = None


class Story:
    """Fed before everything else, so that the others find what a frame refers to."""

    def __init__(self) -> None:
        self.calls: dict[str, Call] = {}
        self.agents: dict[str, Agent] = {}
        self.input_tokens = 0
        self.output_tokens = 0

    def feed(self, frame: Frame) -> None:
        match frame.type:
            case "tool_start":
                self._begin(frame)
            case "tool_args" if (call := self.call(frame)) and not call.has_args:
                call.args += frame.text("content")
            case "tool_output" if call := self.call(frame):
                call.printed.add(frame.text("content"))
            case "tool_end":
                call = self.call(frame) or self._begin(frame)
                result_seen = frame.data.get("result_seen") is not False
                call.end(frame.text("result"), frame.data.get("error"), result_seen=result_seen)
            case "approval" if (call := self.call(frame)) and frame.data.get("state") == "edit":
                call.args, call.has_args = frame.text("args"), True
            case "agent_start":
                parent = self.agents.get(frame.text("parent_id"))
                self.agents[frame.text("agent_id")] = Agent(frame, parent.path if parent else "")
            case "agent_end" if agent := self.agents.get(frame.text("agent_id")):
                agent.error = frame.data.get("error")
            case "token" if agent := self.agents.get(frame.text("agent_id")):
                agent.said += frame.text("content")
            case "usage":
                self.input_tokens += frame.number("input_tokens")
                self.output_tokens += frame.number("output_tokens")
            case _:
                pass

    def call(self, frame: Frame) -> Call | None:
        return self.calls.get(frame.text("tool_id"))

    def started_by(self, tool_id: str) -> Agent | None:
        """The sub-agent that a call started."""
        return next((agent for agent in self.agents.values() if tool_id and agent.tool_id == tool_id), None)

    def line_of(self, agent_id: str) -> list[str]:
        """A sub-agent, the one that started it, and so on up to the main agent, which is not in it."""
        line: list[str] = []
        while agent_id and agent_id not in line:
            line.append(agent_id)
            agent = self.agents.get(agent_id)
            agent_id = agent.parent_id if agent else ""
        return line

    def _begin(self, frame: Frame) -> Call:
        agent = self.agents.get(frame.text("agent_id"))
        call = self.calls[frame.text("tool_id")] = Call(frame, agent.path if agent else "")
        if agent is not None:
            agent.calls += 1
        return call
