"""Where the messages of a run are gathered: numbers them, dates them, and says who speaks."""

from typing import Any

from limelight.dialects.base import AgentTree, Increment
from limelight.dialects.v2.message import Metadata, message
from limelight.events import AgentStarted


class Outbox:
    """Ids count the whole messages of the run, so that they are the same however a reader's deltas are joined."""

    def __init__(self) -> None:
        self.turn = 1
        self._tree = AgentTree()
        self._names: dict[str, str] = {}
        self._count = 0
        self._at = 0
        self._steady_at = 0
        self._out: list[bytes] = []

    def open(self, at: int, *, delta: bool) -> None:
        """Before each Record. What a delta brings along besides its text is dated by the Record before it: the same,
        however many deltas were joined."""
        self._at = at
        if not delta:
            self._steady_at = at

    def taken(self) -> list[bytes]:
        """All that was sent since the last time."""
        out, self._out = self._out, []
        return out

    def meet(self, event: AgentStarted) -> None:
        self._tree.add(event)
        self._names[event.agent_id] = event.name

    def new_id(self) -> str:
        self._count += 1
        return f"msg_{self.turn}_{self._count}"

    def new_stream_id(self, message_type: str, step: int | None) -> str:
        self._count += 1
        return f"msg-{self.turn}-{step or 0}-{message_type}-{self._count}-stream"

    def send(self, message_type: str, content: str, agent_id: str = "", **metadata: Any) -> None:
        """One whole message of its own."""
        self.put(message_type, content, self.new_id(), agent_id, metadata)

    def put(
        self,
        message_type: str,
        content: str,
        message_id: str,
        agent_id: str,
        metadata: Metadata,
        role: str = "assistant",
    ) -> None:
        at = self._at if metadata.get("is_delta") else self._steady_at
        about = {**self._who(agent_id), **metadata}
        payload = message(message_type, content, message_id, at, about, role=role)
        self._out.append(Increment(payload) if metadata.get("streaming") else payload)

    def _who(self, agent_id: str) -> Metadata:
        """Sub-agents are named; the main agent goes without saying."""
        if not agent_id:
            return {}
        name = self._names.get(agent_id, agent_id)
        return {"agent_id": agent_id, "agent_name": name, "depth": self._tree.depth(agent_id)}
