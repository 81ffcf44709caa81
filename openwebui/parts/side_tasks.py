"""Open WebUI's own chores (titles, tags, …), done without the agent: a run for each would be slow and dear."""

import json

from openwebui.parts.types import Json, as_objects, text_of

NO_MERGING = "The Deep Agent Pipe cannot merge answers: take one of them, or merge with another model."


def first_question(messages: list[Json]) -> str:
    for message in messages:
        if message.get("role") == "user":
            return " ".join(text_of(message.get("content")).split())
    return ""


def answer_to_task(task: str, body: Json) -> str:
    """The reply in the form that Open WebUI wants for this chore; "" for those that can do without."""
    if task == "title_generation":
        question = first_question(as_objects(body.get("messages")))
        return json.dumps({"title": question[:60] or "New chat"}, ensure_ascii=False)
    if task == "moa_response_generation":
        return NO_MERGING
    empty = {"tags_generation": "tags", "follow_up_generation": "follow_ups", "query_generation": "queries"}
    return json.dumps({empty[task]: []}) if task in empty else ""
