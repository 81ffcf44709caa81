"""What Open WebUI writes around a question: passages of files and of knowledge."""

from typing import Any

from openwebui.parts.types import Json, as_object, as_objects, text_of


def apart(messages: list[Json], metadata: Json) -> list[Json]:
    """The question as it was asked, behind a system message with what was written around it.

    On the next turn Open WebUI sends the plain question. An agent that had heard another one would lose its memory."""
    question = text_of(as_object(metadata.get("user_message")).get("content"))
    places = [place for place, message in enumerate(messages) if message.get("role") == "user"]
    if not question.strip() or not places:
        return messages
    message, before, behind = messages[places[-1]], messages[: places[-1]], messages[places[-1] + 1 :]
    said = text_of(message.get("content"))
    if said.strip() == question.strip() or question.strip() not in said:
        return messages
    context: Json = {"role": "system", "content": said.strip().removesuffix(question.strip()).strip()}
    return [*before, context, {**message, "content": _with_text(message.get("content"), question)}, *behind]


def _with_text(content: Any, text: str) -> Any:
    """The same content with another text; images stay."""
    if not isinstance(content, list):
        return text
    return [{"type": "text", "text": text}, *(part for part in as_objects(content) if part.get("type") != "text")]
