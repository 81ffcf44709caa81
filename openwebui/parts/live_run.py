"""What becomes of a run that is live in a chat when the next question comes."""

import contextlib
from collections.abc import AsyncGenerator

from openwebui.parts.server import Lost, Refused, Server
from openwebui.parts.types import Json, as_object, as_objects

LIVE = ("queued", "running", "waiting")
FOLLOWED: set[str] = set()
"""The requests whose runs somebody looks at in this process."""


@contextlib.asynccontextmanager
async def followed(request: Json) -> AsyncGenerator[None, None]:
    FOLLOWED.add(request["request_id"])
    try:
        yield
    finally:
        FOLLOWED.discard(request["request_id"])


async def live_run(server: Server, request: Json) -> Json | None:
    """The run that is live in the chat of this request. Raises Lost."""
    try:
        session = await server.call("GET", f"/sessions/{request['chat_id']}")
        run = as_object(await server.call("GET", f"/runs/{session['run_id']}"))
    except (Refused, KeyError, TypeError):
        return None
    return run if run.get("state") in LIVE else None


async def own_run(server: Server, request: Json) -> str:
    """The run that this request began, if Stop was faster than the server's answer, else "". Raises Lost."""
    run = await live_run(server, request)
    return str(run["run_id"]) if run is not None and run.get("request_id") == request["request_id"] else ""


async def turn_of(server: Server, request: Json) -> str:
    """`wait` for a run that answers the same question (two models side by side). `cancel` one that answers another:
    the chat has gone on without it. `error` if it cannot be told which, so that the caller asks again."""
    try:
        run = await live_run(server, request)
        if run is None:
            return "error"
        return "wait" if await _is_beside(server, request, run) else "cancel"
    except Lost:
        return "error"


async def _is_beside(server: Server, request: Json, run: Json) -> bool:
    """Whether a run is that of another model. One of the same agent at which nobody looks was left behind when Open
    WebUI was ended in the middle, and the question is asked again. Raises Lost."""
    question, run_request = str(request["request_id"]).partition(".")[0], str(run.get("request_id", ""))
    if not question or not run_request.startswith(f"{question}."):
        return False
    return run_request in FOLLOWED or run.get("agent") != await _agent(server, request)


async def _agent(server: Server, request: Json) -> str:
    """By its name, also if it is the default one. Raises Lost."""
    if "agent" in request:
        return str(request["agent"])
    try:
        agents = as_objects(as_object(await server.call("GET", "/agents")).get("agents"))
    except Refused:
        agents = []
    return next((str(agent.get("name")) for agent in agents if agent.get("default")), "")
