"""The request to the server: which agent, which session, which messages."""

import uuid

from openwebui.parts.continuation import continued
from openwebui.parts.conversation import cleaned
from openwebui.parts.knowledge import apart
from openwebui.parts.models import agent_of
from openwebui.parts.session_id import session_of
from openwebui.parts.truncation import fitting
from openwebui.parts.types import Json, as_objects


def request_of(body: Json, user: Json, metadata: Json) -> Json:
    """The body of `POST /chat/stream`."""
    messages = continued(apart(as_objects(body.get("messages")), metadata), metadata)
    request: Json = {"messages": fitting(cleaned(messages)), "stream": True}
    if agent := agent_of(str(body.get("model", ""))):
        request["agent"] = agent
    if session := session_of(user, metadata):
        request["chat_id"] = session
    # The question's id comes first: by it another model's run for the same question is known.
    question = metadata.get("user_message_id") or metadata.get("message_id") or ""
    request["request_id"] = f"{question}.{uuid.uuid4().hex}"[-200:]
    return request
