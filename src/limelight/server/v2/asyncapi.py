"""The AsyncAPI document of the socket, made from its description as data. `openapi.py` is its sibling for HTTP."""

from typing import Any

import msgspec

from limelight import __version__
from limelight.server.v2 import spec
from limelight.server.v2.replies import Error
from limelight.server.v2.spec import CLIENT, SERVER, UNASKED, Said, about, name_of

_CHANNEL = {"$ref": "#/channels/session"}


def asyncapi(root: str = "") -> bytes:
    """The whole document as JSON; `root` is the path below which the server is."""
    shapes = [*(said.shape for said in CLIENT), *SERVER]
    refs, schemas = msgspec.json.schema_components(shapes, ref_template="#/components/schemas/{name}")
    examples = {said.shape: said.examples for said in CLIENT}
    messages = {
        name_of(shape): _message(shape, ref, examples.get(shape, ())) for shape, ref in zip(shapes, refs, strict=True)
    }
    document: dict[str, Any] = {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Limelight: the socket of Web API v2",
            "version": __version__,
            "description": "Where an API key is set, connect with the header `Authorization: Bearer …`.",
        },
        "defaultContentType": "application/json",
        "channels": {"session": _channel(messages, root)},
        "operations": {**{said.name: _hears(said) for said in CLIENT}, "watch": _shows()},
        "components": {"messages": messages, "schemas": {name: _plain(schema) for name, schema in schemas.items()}},
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


def _message(shape: type, payload: dict[str, Any], examples: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    message: dict[str, Any] = {"name": name_of(shape), "summary": about(shape), "payload": payload}
    if examples:
        message["examples"] = [{"payload": example} for example in examples]
    return message


def _channel(messages: dict[str, Any], root: str) -> dict[str, Any]:
    query = {param.name: {"description": param.description, **param.schema} for param in spec.QUERY}
    return {
        "address": root + spec.PATH,
        "summary": spec.SUMMARY,
        "description": spec.DESCRIPTION,
        "parameters": {"session_id": {"description": "A name of your choice: 1 to 128 of A-Z a-z 0-9 . _ : -"}},
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in messages},
        "bindings": {
            "ws": {
                "method": "GET",
                "query": {"type": "object", "properties": query},
                "headers": {"type": "object", "properties": {"Authorization": {"type": "string"}}},
                "bindingVersion": "0.1.0",
            }
        },
    }


def _hears(said: Said) -> dict[str, Any]:
    """The server receives a message, and answers."""
    return {
        "action": "receive",
        "channel": _CHANNEL,
        "summary": about(said.shape),
        "messages": _refs(said.shape),
        "reply": {"channel": _CHANNEL, "messages": _refs(*said.answers, Error)},
    }


def _shows() -> dict[str, Any]:
    """The server sends what happens, and nobody has to ask."""
    summary = "What the session's agent does, and how the session is."
    return {"action": "send", "channel": _CHANNEL, "summary": summary, "messages": _refs(*UNASKED)}


def _refs(*shapes: type) -> list[dict[str, str]]:
    return [{"$ref": f"#/channels/session/messages/{name_of(shape)}"} for shape in shapes]


def _plain(schema: Any) -> Any:
    """Without OpenAPI's `discriminator`, which is something else in AsyncAPI; every alternative names its own tag."""
    if isinstance(schema, dict):
        return {key: _plain(value) for key, value in schema.items() if key != "discriminator"}  # pyright: ignore[reportUnknownVariableType]
    return [_plain(one) for one in schema] if isinstance(schema, list) else schema  # pyright: ignore[reportUnknownVariableType]
