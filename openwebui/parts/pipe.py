"""What Open WebUI sees."""

from collections.abc import AsyncGenerator

from openwebui.parts.continuation import goes_round
from openwebui.parts.models import DEFAULT_MODEL, model_of
from openwebui.parts.server import Server
from openwebui.parts.side_tasks import answer_to_task
from openwebui.parts.turn import Performance
from openwebui.parts.types import Ask, Chunk, Emit, Json, as_objects
from openwebui.parts.valves import UserValves, Valves

NAME = "Deep Agent Pipe"


class Pipe:
    """One instance serves all users and chats, so it keeps nothing of any of them."""

    Valves = Valves
    UserValves = UserValves

    def __init__(self) -> None:
        self.type = "manifold"
        self.name = NAME
        self.valves = Valves.model_validate({})

    async def pipes(self) -> list[dict[str, str]]:
        """Every agent of the server as a model; if it is down, the default one, which says so when it is used."""
        default = {"id": DEFAULT_MODEL, "name": ""}
        try:
            async with Server(self.valves, {}) as server:
                agents = as_objects((await server.call("GET", "/agents", seconds=3))["agents"])
                others = [str(agent["name"]) for agent in agents if not agent.get("default")]
        except Exception:  # raised, it would take all models of the pipe away, and nobody would be told why
            return [default]
        return [default, *({"id": model_of(name), "name": f" · {name}"} for name in others)]

    async def pipe(
        self,
        body: Json,
        __user__: Json | None = None,
        __metadata__: Json | None = None,
        __task__: str | None = None,
        __task_body__: Json | None = None,
        __event_emitter__: Emit | None = None,
        __event_call__: Ask | None = None,
    ) -> str | AsyncGenerator[Chunk, None]:
        if __task__:
            return answer_to_task(str(__task__), __task_body__ or body)
        if goes_round(as_objects(body.get("messages")), __metadata__ or {}):
            return ""
        performance = Performance(
            self.valves, body, __user__ or {}, __metadata__ or {}, __event_emitter__, __event_call__
        )
        return performance.stream() if body.get("stream") else await performance.whole()
