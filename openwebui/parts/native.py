"""The display with a live row for each tool."""

from collections.abc import Callable

from openwebui.parts.conversation import CallKey
from openwebui.parts.frames import Frame, is_main
from openwebui.parts.messages import Voice
from openwebui.parts.output_items import Items, titled
from openwebui.parts.run_state import Agent, Call, Story, row_title
from openwebui.parts.text import outcome, short, tools_word
from openwebui.parts.types import Chunk, Json


class NativeDisplay:
    """A live row for each tool and sub-agent, thoughts as reasoning, texts where they were said."""

    def __init__(self, story: Story, run_id: Callable[[], str], clock: Callable[[], float]) -> None:
        self._story = story
        self._run_id = run_id
        self._items = Items()
        self._voice = Voice(self._items, run_id, clock)
        self._keys: dict[str, str] = {}
        self._last_row: dict[str, str] = {}
        self._images: dict[str, list[Json]] = {}
        self._printing: dict[str, Call] = {}
        """Those that printed something since the last flush. Only what is sent is worth a label."""

    def flush(self) -> list[Chunk]:
        for tool_id, call in self._printing.items():
            if call.printed.last_line:
                name = f"{call.title} · {short(call.printed.last_line)}"
                self._items.change(self._keys[tool_id], name=name, status="completed")
        self._printing.clear()
        return self._items.flush()

    def feed(self, frame: Frame) -> None:
        data = frame.data
        match frame.type:
            case "token" if is_main(frame):
                self._voice.say(frame.text("content"))
            case "reasoning" if is_main(frame):
                self._voice.think(frame.text("content"))
            case "plan" if is_main(frame) and data.get("text"):
                self._voice.think(frame.text("text") + "\n\n")
            case "answer":
                titled(self._items, self._voice.last_text, frame)
            case "tool_start" if call := self._story.call(frame):
                self._start(call)
            case "tool_args" | "tool_output" | "approval" | "_unanswered" if call := self._story.call(frame):
                self._progress(call, frame)
            case "tool_end" if call := self._story.call(frame):
                self._end(call)
            case "agent_start" | "agent_end" if agent := self._story.agents.get(frame.text("agent_id")):
                self._agent(agent, ended=frame.type == "agent_end")
            case "_image" if call := self._story.call(frame):
                self._image(call, frame.text("url"))
            case _:
                pass

    def close(self) -> None:
        self._voice.pause()
        for call in self._story.calls.values():
            if not call.done and call.tool_id in self._keys:
                call.end("Error: interrupted", "interrupted")
                self._end(call)
        for agent in self._story.agents.values():
            key = self._keys.get(f"agent {agent.agent_id}")
            if key is not None and f"{key}.out" not in self._items:
                self._items.change(key, status="failed")
                self._output(key, "Error: interrupted")

    def _start(self, call: Call) -> None:
        """A row at the end; that of a sub-agent's tool stands below the sub-agent's other rows."""
        if not call.depth:
            self._voice.pause()
        key = str(CallKey(self._run_id(), call.depth, call.name, call.tool_id))
        self._keys[call.tool_id] = key
        row: Json = {"type": "function_call", "id": key, "call_id": key, "name": call.title, "arguments": call.args}
        row["status"] = "completed" if call.has_args else "in_progress"
        self._put_below(call.agent_id, row)
        agent = self._story.agents.get(call.agent_id)
        if agent is not None and (spawner := self._row_of(agent)):
            self._items.change(spawner, name=f"{agent.path} · {call.name} ({agent.calls})")

    def _put_below(self, agent_id: str, row: Json) -> None:
        """Behind the last row of the agent and of those that it started."""
        before = self._last_row.get(agent_id, "")
        self._items.put(row, after=before)
        for agent in self._story.line_of(agent_id):
            if self._last_row.get(agent, "") == before:
                self._last_row[agent] = row["id"]

    def _progress(self, call: Call, frame: Frame) -> None:
        key = self._keys[call.tool_id]
        self._printing.pop(call.tool_id, None)
        match frame.type:
            case "tool_args" if not call.has_args:
                self._items.grow(key, frame.text("content"))
                if call.args_are_whole:
                    self._items.change(key, status="completed")
            case "tool_output":
                self._printing[call.tool_id] = call
            case "approval":
                waits = frame.data.get("state") == "requested"
                name = f"{call.title} · waiting for approval" if waits else call.title
                self._items.change(key, name=name, arguments=call.args, status="completed")
            case "_unanswered":
                self._items.change(key, name=f"{call.title} · {frame.text('where')}")
            case _:
                pass

    def _end(self, call: Call) -> None:
        if call.tool_id not in self._keys:  # a server that tells of the end only
            self._start(call)
        key = self._keys[call.tool_id]
        self._printing.pop(call.tool_id, None)
        agent = self._story.started_by(call.tool_id)
        status = "completed" if call.error is None else "failed"
        name = row_title(call, _agent_title(agent) if agent else call.title)
        self._items.change(key, name=name, status=status)
        self._output(key, call.output)

    def _output(self, key: str, text: str) -> None:
        item: Json = {"type": "function_call_output", "id": f"{key}.out", "call_id": key, "status": "completed"}
        item["output"] = [{"type": "input_text", "text": outcome(text)}]
        if key in self._images:
            item["files"] = list(self._images[key])
        self._items.put(item, after=key)

    def _agent(self, agent: Agent, *, ended: bool) -> None:
        """A sub-agent is the row of the call that started it; one that nobody called gets a row of its own."""
        key = self._row_of(agent)
        if key is None:
            key = str(CallKey(self._run_id(), agent.depth, agent.name, f"agent-{agent.agent_id}"))
            self._keys[f"agent {agent.agent_id}"] = key
            row: Json = {"type": "function_call", "id": key, "call_id": key, "name": "", "arguments": "{}"}
            self._put_below(agent.parent_id, row)
        self._last_row.setdefault(agent.agent_id, key)
        self._items.change(key, name=_agent_title(agent), status="completed" if agent.error is None else "failed")
        if ended and agent.tool_id not in self._keys:
            self._output(key, agent.said if agent.error is None else f"Error: {agent.error}")

    def _row_of(self, agent: Agent) -> str | None:
        return self._keys.get(agent.tool_id) or self._keys.get(f"agent {agent.agent_id}")

    def _image(self, call: Call, url: str) -> None:
        key = self._keys[call.tool_id]
        self._images.setdefault(key, []).append({"type": "image", "url": url})
        if call.done:
            self._output(key, call.output)


def _agent_title(agent: Agent) -> str:
    return f"{agent.path} ({tools_word(agent.calls)})" if agent.calls else agent.path
