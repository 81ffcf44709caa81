"""The request to the server, and what becomes of a run that is live in the same chat."""

import re
import uuid

from openwebui.parts.conversation import cleaned
from openwebui.parts.server import Lost, Refused, Server
from openwebui.parts.values import Json, as_objects

DEFAULT_MODEL = "default"


def request_of(body: Json, user: Json, metadata: Json) -> Json:
    """The body of `POST /chat/stream`. A chat is a session; another user of the same chat has another one."""
    agent = str(body.get("model", "")).partition(".")[2]
    chat_id = str(metadata.get("chat_id") or "")
    request: Json = {"messages": cleaned(as_objects(body.get("messages"))), "stream": True}
    if agent and agent != DEFAULT_MODEL:
        request["agent"] = agent
    if chat_id:
        request["chat_id"] = re.sub(r"[^A-Za-z0-9._:-]", "-", f"{user.get('id') or 'user'}.{chat_id}")[:128]
    question = metadata.get("user_message_id") or metadata.get("message_id") or ""
    request["request_id"] = f"{question}.{uuid.uuid4().hex}"[-200:]
    return request


async def turn_of(server: Server, request: Json) -> str:
    """What to do with a run that is live in this chat: wait for it if it answers the same question (two models side
    by side), else stop it: the chat that it belonged to has gone on without it."""
    session_id = request.get("chat_id")
    if not session_id:
        return "error"
    try:
        session = await server.call("GET", f"/sessions/{session_id}")
        run = await server.call("GET", f"/runs/{session['run_id']}")
    except (Refused, Lost, KeyError, TypeError):
        return "cancel"
    question = str(request["request_id"]).partition(".")[0]
    same = question and str(run.get("request_id", "")).startswith(f"{question}.")
    return "wait" if run.get("state") in ("queued", "running", "waiting") and same else "cancel"
