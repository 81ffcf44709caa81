"""What is sent to the server and what it answers, as bytes."""

import json

from openwebui.parts.types import Json, as_object


def content_of(body: Json | None, cursor: str = "") -> Json:
    """For httpx. Half a sign, which JSON can hold and UTF-8 cannot, is left out: the chat would send it for ever."""
    headers = {"Last-Event-ID": cursor} if cursor else {}
    if body is None:
        return {"headers": headers}
    content = json.dumps(body, ensure_ascii=False).encode(errors="replace")
    return {"content": content, "headers": {**headers, "Content-Type": "application/json"}}


def problem_of(body: bytes) -> Json:
    """What the server has against it. The page of a proxy is nothing to show in a chat."""
    try:
        return as_object(json.loads(body))
    except ValueError:
        text = body[:300].decode(errors="replace").strip()
    return {} if text.startswith("<") else {"detail": text}
