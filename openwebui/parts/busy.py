"""What becomes of a run that is live in a chat when the next question comes."""

from openwebui.parts.server import Lost, Refused, Server
from openwebui.parts.values import Json, as_object

LIVE = ("queued", "running", "waiting")


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
    except Lost:
        run = None
    if run is None:
        return "error"
    question = str(request["request_id"]).partition(".")[0]
    return "wait" if question and str(run.get("request_id", "")).startswith(f"{question}.") else "cancel"
