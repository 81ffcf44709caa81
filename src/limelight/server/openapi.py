"""The OpenAPI document, generated from the endpoints."""

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from limelight import __version__
from limelight.errors import LimelightError
from limelight.server.endpoint import Endpoint
from limelight.server.problem_details import Problem
from limelight.server.stream_schemas import COMPONENT as EVENT_COMPONENT
from limelight.server.stream_schemas import EVENT_STREAM, FRAME_TYPES, event_schema

_PATH_PARAMETER = re.compile(r"{(\w+)}")


def openapi(endpoints: Iterable[Endpoint], root: str = "") -> bytes:
    """Return the OpenAPI document as JSON. `root` is the root path of the server."""
    listed = list(endpoints)
    types = {t for e in listed for t in (e.response, e.body) if t is not None and not isinstance(t, str)}
    types |= {Problem, *FRAME_TYPES}
    ordered = sorted(types, key=str)
    refs, components = msgspec.json.schema_components(ordered, ref_template="#/components/schemas/{name}")
    ref_of = dict(zip(ordered, refs, strict=True))
    components[EVENT_COMPONENT] = event_schema(ref_of.__getitem__)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in listed:
        paths.setdefault(endpoint.documented_path, {})[endpoint.method.lower()] = _operation(endpoint, ref_of)
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "Limelight",
            "version": __version__,
            "description": "One durable log of typed events behind every agent, streamed to any client.",
        },
        "servers": [{"url": root or "/"}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}, {}],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


def _operation(endpoint: Endpoint, ref_of: dict[type, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": endpoint.handler.__name__,
        "tags": [endpoint.tag],
        "summary": endpoint.summary,
        "description": endpoint.description,
        "parameters": [
            *(
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                for name in _PATH_PARAMETER.findall(endpoint.documented_path)
            ),
            *(
                {"name": p.name, "in": "query", "description": p.description, "schema": p.schema}
                for p in endpoint.query
            ),
        ],
        "responses": _responses(endpoint, ref_of),
    }
    if endpoint.public:
        operation["security"] = []
    if endpoint.body is not None:
        operation["requestBody"] = {
            "required": endpoint.body_required,
            "content": {"application/json": {"schema": ref_of[endpoint.body]}},
        }
    return operation


def _responses(endpoint: Endpoint, ref_of: dict[type, Any]) -> dict[str, Any]:
    responses: dict[str, Any] = {str(endpoint.status): {"description": "Done"}}
    if isinstance(endpoint.response, str):
        event = {"$ref": f"#/components/schemas/{EVENT_COMPONENT}"}
        schema = event if endpoint.response == EVENT_STREAM else {"type": "string"}
        responses["200"]["content"] = {endpoint.response: {"schema": schema}}
    elif endpoint.response is not None:
        responses["200"]["content"] = {"application/json": {"schema": ref_of[endpoint.response]}}
    by_status: dict[int, list[type[LimelightError]]] = {}
    for error in endpoint.all_errors:
        by_status.setdefault(error.status, []).append(error)
    for status, errors in sorted(by_status.items()):
        responses[str(status)] = {
            "description": "; ".join(f"`{error.code}`: {error.title}" for error in errors),
            "content": {"application/problem+json": {"schema": ref_of[Problem]}},
        }
    return responses
