"""The request to the server: which agent, which session, which messages."""

import re
import uuid

from openwebui.parts.conversation import cleaned
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
    # The question's id comes first: by it another model's run for the same question is known.
    question = metadata.get("user_message_id") or metadata.get("message_id") or ""
    request["request_id"] = f"{question}.{uuid.uuid4().hex}"[-200:]
    return request
