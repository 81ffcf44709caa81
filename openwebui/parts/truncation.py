"""A conversation that a request can carry. Open WebUI sends all of it each time, with every result and every image."""

import json
from collections.abc import Callable

from openwebui.parts.types import Json, as_objects

REQUEST_BYTES = 8_000_000
"""The server takes 10 MiB, unless it is told otherwise."""
OLD_RESULT_CHARS = 4_000
LEFT_OUT: Json = {"role": "system", "content": "The conversation is too long: its beginning was left out."}


def fitting(messages: list[Json]) -> list[Json]:
    """Within the limit as it is. Otherwise the oldest give way first: results, then images, then whole turns."""
    over = sum(map(_size, messages)) - REQUEST_BYTES
    found, question = list(messages), _last_question(messages)
    for lighter in (_short_result, _without_images):
        over = _lighten(found, question, over, lighter)
    return found if over <= 0 else _newest(found, question, over)


def _lighten(messages: list[Json], end: int, over: int, lighter: Callable[[Json], Json]) -> int:
    """Make messages before the end lighter until nothing is over; what still is."""
    for place, message in enumerate(messages[:end]):
        if over <= 0:
            break
        messages[place] = lighter(message)
        if messages[place] is not message:
            over -= _size(message) - _size(messages[place])
    return over


def _short_result(message: Json) -> Json:
    content = message.get("content")
    if message.get("role") != "tool" or not isinstance(content, str) or len(content) <= OLD_RESULT_CHARS:
        return message
    return {**message, "content": f"{content[:OLD_RESULT_CHARS]}\n\n… (cut: {len(content):,} characters in all)"}


def _without_images(message: Json) -> Json:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    parts = as_objects(content)
    texts = [part for part in parts if part.get("type") == "text"]
    gone: Json = {"type": "text", "text": "(an image that is not sent any more)"}
    return message if len(texts) == len(parts) else {**message, "content": [*texts, gone]}


def _newest(messages: list[Json], question: int, over: int) -> list[Json]:
    """Without the first turns. One is left out whole: a result without its call would be refused."""
    start = 0
    while over > 0 and start < question:
        over -= _size(messages[start])
        start += 1
    while start < question and messages[start].get("role") != "user":
        start += 1
    systems = [message for message in messages[:start] if message.get("role") == "system"]
    return [*systems, LEFT_OUT, *messages[start:]] if start else messages


def _last_question(messages: list[Json]) -> int:
    """The place of the last message of the user, which is never touched."""
    return max((place for place, message in enumerate(messages) if message.get("role") == "user"), default=0)


def _size(message: Json) -> int:
    return len(json.dumps(message)) + 2
