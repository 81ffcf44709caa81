"""The session of the server that a chat is."""

import hashlib
import re
import uuid

from openwebui.parts.types import Json

SESSION_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


def session_of(user: Json, metadata: Json) -> str:
    """A chat of a user is one; another user of the same chat has another. "" if there is no chat."""
    user_id, chat_id = str(user.get("id") or "user"), str(metadata.get("chat_id") or "")
    if not chat_id:
        return ""
    if chat_id.startswith("channel:"):  # where every mention is a question of its own, and all may come at once
        chat_id = f"{chat_id}.{metadata.get('message_id') or uuid.uuid4().hex}"
    plain = f"{user_id}.{chat_id}"
    if SESSION_ID.fullmatch(plain) and "." not in user_id:
        return plain
    # What cannot be an id as it is must not become that of another chat.
    return hashlib.sha256(f"{user_id}\0{chat_id}".encode(errors="replace")).hexdigest()
