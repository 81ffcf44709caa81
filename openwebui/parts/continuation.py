"""Calls that end with no question: "Continue response", and rounds that Open WebUI goes by itself."""

from openwebui.parts.types import Json

CONTINUE: Json = {"role": "user", "content": "Continue."}


def goes_round(messages: list[Json], metadata: Json) -> bool:
    """Whether Open WebUI has come back with the result of a call that is none of its business."""
    return not messages or (_last_role(messages) == "tool" and not metadata.get("assistant_message_id"))


def continued(messages: list[Json], metadata: Json) -> list[Json]:
    """Without a question the agent would begin again; for "Continue response" it is asked to go on."""
    goes_on = metadata.get("assistant_message_id") and _last_role(messages) != "user"
    return [*messages, CONTINUE] if goes_on or _last_role(messages) == "assistant" else messages


def _last_role(messages: list[Json]) -> str:
    return str(messages[-1].get("role") or "") if messages else ""
