"""What becomes of a run that is live in a chat when the next question comes."""

from openwebui.parts.server import Lost, Refused, Server
from openwebui.parts.values import Json

LIVE = ("queued", "running", "waiting")


async def turn_of(server: Server, request: Json) -> str:
    """`wait` for a run that answers the same question (two models side by side). `cancel` one that answers another:
    the chat has gone on without it. `error` if it cannot be told which, so that the caller asks again."""
    try:
        session = await server.call("GET", f"/sessions/{request['chat_id']}")
        run = await server.call("GET", f"/runs/{session['run_id']}")
    except (Refused, Lost, KeyError, TypeError):
        return "error"
    if run.get("state") not in LIVE:
        return "error"
    question = str(request["request_id"]).partition(".")[0]
    return "wait" if question and str(run.get("request_id", "")).startswith(f"{question}.") else "cancel"
