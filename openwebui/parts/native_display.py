"""The display `native`: a live row for each tool call and sub-agent, between texts and reasoning."""

from collections.abc import Callable

from openwebui.parts.frames import Frame, Json
from openwebui.parts.output_items import Chunk, OutputItems, message_item, text_content
from openwebui.parts.run_state import CallKey, RunState, SubAgent, ToolCall, finished_title, outcome_title
from openwebui.parts.text_format import result_text, shorten, tool_count


class MessageWriter:
    """Writes the texts and reasoning of the main agent. Each uninterrupted text is one item."""

    def __init__(self, items: OutputItems, run_id: Callable[[], str], clock: Callable[[], float]) -> None:
        self._items = items
        self._run_id = run_id
        self._clock = clock
        self._count = 0
        self._text_id = ""
        self._reasoning_id = ""
        self._reasoning_since = 0.0
        self.last_text_id = ""

    def add_text(self, text: str) -> None:
        self._finish_reasoning()
        if not self._text_id:
            text = text.lstrip("\n")  # only separates messages of a stream
            if not text:
                return
            self._text_id = self.last_text_id = self._new_id("m")
            self._items.put(message_item(self._text_id, ""))
        self._items.append(self._text_id, text)

    def add_reasoning(self, text: str) -> None:
        self._finish_text()
        if not self._reasoning_id:
            self._reasoning_id, self._reasoning_since = self._new_id("r"), self._clock()
            item: Json = {"type": "reasoning", "id": self._reasoning_id, "status": "in_progress", "summary": []}
            self._items.put({**item, "content": text_content("")})
        self._items.append(self._reasoning_id, text)

    def finish(self) -> None:
        self._finish_text()
        self._finish_reasoning()

    def _finish_text(self) -> None:
        if self._text_id:
            self._items.update(self._text_id, status="completed")
            self._text_id = ""

    def _finish_reasoning(self) -> None:
        if self._reasoning_id:
            seconds = round(self._clock() - self._reasoning_since)
            self._items.update(self._reasoning_id, status="completed", duration=seconds)
            self._reasoning_id = ""

    def _new_id(self, prefix: str) -> str:
        self._count += 1
        return f"{self._run_id()}.{prefix}{self._count}"


class NativeDisplay:
    """Turns frames into output items. A "row" is the item of a call or sub-agent, with the type `function_call`."""

    def __init__(self, state: RunState, run_id: Callable[[], str], clock: Callable[[], float]) -> None:
        self._state = state
        self._run_id = run_id
        self._items = OutputItems()
        self._messages = MessageWriter(self._items, run_id, clock)
        self._call_rows: dict[str, str] = {}
        self._agent_rows: dict[str, str] = {}
        """Item ids of the rows of sub-agents that no call has started, by agent id."""
        self._last_rows: dict[str, str] = {}
        """Item id of the last row of each agent and its sub-agents, by agent id."""
        self._images: dict[str, list[Json]] = {}
        self._calls_with_output: dict[str, ToolCall] = {}
        """Calls with output since the last flush. Their labels are set by the flush, because only it sends them."""

    def flush(self) -> list[Chunk]:
        for tool_id, call in self._calls_with_output.items():
            if call.printed.last_line:
                name = f"{call.title} · {shorten(call.printed.last_line)}"
                self._items.update(self._call_rows[tool_id], name=name, status="completed")
        self._calls_with_output.clear()
        return self._items.flush()

    def feed(self, frame: Frame) -> None:
        match frame.type:
            case "token" if frame.is_main_agent:
                self._messages.add_text(frame.text("content"))
            case "reasoning" if frame.is_main_agent:
                self._messages.add_reasoning(frame.text("content"))
            case "plan" if frame.is_main_agent and frame.data.get("text"):
                self._messages.add_reasoning(frame.text("text") + "\n\n")
            case "answer":
                self._items.add_title(self._messages.last_text_id, frame)
            case "tool_start" if call := self._state.call(frame):
                self._start_call(call)
            case "tool_args" | "tool_output" | "approval" | "_unanswered" if call := self._state.call(frame):
                self._update_call(call, frame)
            case "tool_end" if call := self._state.call(frame):
                self._finish_call(call)
            case "agent_start" | "agent_end" if agent := self._state.agents.get(frame.text("agent_id")):
                self._update_agent(agent, ended=frame.type == "agent_end")
            case "_image" if call := self._state.call(frame):
                self._add_image(call, frame.text("url"))
            case _:
                pass

    def close(self) -> None:
        self._messages.finish()
        for call in self._state.calls.values():
            if not call.done and call.tool_id in self._call_rows:
                call.finish("Error: interrupted", "interrupted")
                self._finish_call(call)
        for row in self._agent_rows.values():
            if f"{row}.out" not in self._items:
                self._items.update(row, status="failed")
                self._put_output(row, "Error: interrupted")

    def _start_call(self, call: ToolCall) -> None:
        if not call.depth:
            self._messages.finish()
        row = self._call_rows[call.tool_id] = call.key(self._run_id())
        item: Json = {"type": "function_call", "id": row, "call_id": row, "name": call.title, "arguments": call.args}
        item["status"] = "completed" if call.has_args else "in_progress"
        self._put_row(call.agent_id, item)
        agent = self._state.agents.get(call.agent_id)
        if agent is not None and (agent_row := self._row_of(agent)):
            self._items.update(agent_row, name=f"{agent.path} · {call.name} ({agent.call_count})")

    def _put_row(self, agent_id: str, item: Json) -> None:
        """Add a row of an agent after the last row of that agent and its sub-agents; for the main agent at the end."""
        previous = self._last_rows.get(agent_id, "")
        self._items.put(item, after=previous)
        for ancestor in self._state.ancestors(agent_id):
            if self._last_rows.get(ancestor, "") == previous:
                self._last_rows[ancestor] = item["id"]

    def _update_call(self, call: ToolCall, frame: Frame) -> None:
        row = self._call_rows[call.tool_id]
        self._calls_with_output.pop(call.tool_id, None)
        match frame.type:
            case "tool_args" if not call.has_args:
                self._items.append(row, frame.text("content"))
                if call.args_are_complete:
                    self._items.update(row, status="completed")
            case "tool_output":
                self._calls_with_output[call.tool_id] = call
            case "approval":
                is_waiting = frame.data.get("state") == "requested"
                name = f"{call.title} · waiting for approval" if is_waiting else call.title
                self._items.update(row, name=name, arguments=call.args, status="completed")
            case "_unanswered":
                self._items.update(row, name=f"{call.title} · {frame.text('instruction')}")
            case _:
                pass

    def _finish_call(self, call: ToolCall) -> None:
        if call.tool_id not in self._call_rows:  # the server has sent only the end of the call
            self._start_call(call)
        row = self._call_rows[call.tool_id]
        self._calls_with_output.pop(call.tool_id, None)
        agent = self._state.agent_started_by(call.tool_id)
        status = "failed" if call.failed else "completed"
        name = finished_title(call, _agent_title(agent) if agent else call.title)
        self._items.update(row, name=name, status=status)
        self._put_output(row, call.output)

    def _put_output(self, row: str, text: str) -> None:
        item: Json = {"type": "function_call_output", "id": f"{row}.out", "call_id": row, "status": "completed"}
        item["output"] = [{"type": "input_text", "text": result_text(text)}]
        if row in self._images:
            item["files"] = list(self._images[row])
        self._items.put(item, after=row)

    def _update_agent(self, agent: SubAgent, *, ended: bool) -> None:
        """Update the row of a sub-agent: the row of the call that started it, or a separate row without such a call."""
        row = self._row_of(agent)
        if row is None:
            row = str(CallKey(self._run_id(), agent.depth, agent.name, f"agent-{agent.agent_id}"))
            self._agent_rows[agent.agent_id] = row
            item: Json = {"type": "function_call", "id": row, "call_id": row, "name": "", "arguments": "{}"}
            self._put_row(agent.parent_id, item)
        self._last_rows.setdefault(agent.agent_id, row)
        name = outcome_title(_agent_title(agent), agent.outcome)
        self._items.update(row, name=name, status="failed" if agent.failed else "completed")
        if ended and agent.tool_id not in self._call_rows:
            self._put_output(row, agent.text if agent.error is None else f"Error: {agent.error}")

    def _row_of(self, agent: SubAgent) -> str | None:
        return self._call_rows.get(agent.tool_id) or self._agent_rows.get(agent.agent_id)

    def _add_image(self, call: ToolCall, url: str) -> None:
        row = self._call_rows[call.tool_id]
        self._images.setdefault(row, []).append({"type": "image", "url": url})
        if call.done:
            self._put_output(row, call.output)


def _agent_title(agent: SubAgent) -> str:
    return f"{agent.path} ({tool_count(agent.call_count)})" if agent.call_count else agent.path
