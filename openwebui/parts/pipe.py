"""The class that Open WebUI loads: lists agents as models, runs turns, and answers internal tasks."""

import json
from collections.abc import AsyncGenerator

from openwebui.parts.approvals import EventCall
from openwebui.parts.frames import Json, as_objects
from openwebui.parts.output_items import Chunk
from openwebui.parts.request import DEFAULT_MODEL, is_tool_round, message_text, model_id
from openwebui.parts.server_client import LimelightClient
from openwebui.parts.turn import EventEmitter, Turn
from openwebui.parts.valves import UserValves, Valves

NAME = "Deep Agent Pipe"
MERGE_REFUSAL = "The Deep Agent Pipe cannot merge answers: take one of them, or merge with another model."


class Pipe:
    """The pipe function of Open WebUI. One instance serves all users and chats, so it stores nothing about them."""

    Valves = Valves
    UserValves = UserValves

    def __init__(self) -> None:
        self.type = "manifold"
        self.name = NAME
        self.valves = Valves.model_validate({})

    async def pipes(self) -> list[dict[str, str]]:
        """Return a model for each agent. If the server is unavailable, return only the default model, which reports the
        error when it is used."""
        default = {"id": DEFAULT_MODEL, "name": ""}
        try:
            async with LimelightClient(self.valves, {}) as client:
                agents = as_objects((await client.request_json("GET", "/agents", seconds=3))["agents"])
                others = [str(agent["name"]) for agent in agents if not agent.get("default")]
        except Exception:  # after an exception Open WebUI would silently remove all models of the pipe
            return [default]
        return [default, *({"id": model_id(name), "name": f" · {name}"} for name in others)]

    async def pipe(
        self,
        body: Json,
        __user__: Json | None = None,
        __metadata__: Json | None = None,
        __task__: str | None = None,
        __task_body__: Json | None = None,
        __event_emitter__: EventEmitter | None = None,
        __event_call__: EventCall | None = None,
    ) -> str | AsyncGenerator[Chunk, None]:
        """Answer a message of the user with a stream of chunks, or with a text if Open WebUI requests no stream."""
        if __task__:
            return answer_task(str(__task__), __task_body__ or body)
        if is_tool_round(as_objects(body.get("messages")), __metadata__ or {}):
            return ""
        turn = Turn(self.valves, body, __user__ or {}, __metadata__ or {}, __event_emitter__, __event_call__)
        return turn.stream() if body.get("stream") else await turn.text()


def answer_task(task: str, body: Json) -> str:
    """Return the reply to an internal task of Open WebUI, such as a title or tags. It starts no run, which is slow."""
    if task == "title_generation":
        question = first_question(as_objects(body.get("messages")))
        return json.dumps({"title": question[:60] or "New chat"}, ensure_ascii=False)
    if task == "moa_response_generation":
        return MERGE_REFUSAL
    lists = {"tags_generation": "tags", "follow_up_generation": "follow_ups", "query_generation": "queries"}
    return json.dumps({lists[task]: []}) if task in lists else ""


def first_question(messages: list[Json]) -> str:
    for message in messages:
        if message.get("role") == "user":
            return " ".join(message_text(message.get("content")).split())
    return ""
