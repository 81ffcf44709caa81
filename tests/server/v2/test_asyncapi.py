"""The AsyncAPI document: it is consistent, and describes what the code does."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast, get_args

import msgspec
import pytest
from starlette.routing import WebSocketRoute

from limelight import __version__
from limelight.config import load_settings
from limelight.server.api_docs_page import docs_page
from limelight.server.app import create_app
from limelight.server.routes import ENDPOINTS
from limelight.server.v2.asyncapi import COMMANDS, QUERY, SERVER_MESSAGES, asyncapi, name_of
from limelight.server.v2.commands import AnyCommand, parse
from limelight.server.v2.replies import Reply
from tests.support import agents
from tests.support.documents import read
from tests.support.json_schemas import Checker
from tests.support.markdown import codes, rows, sections
from tests.support.server import Served, offer, serving

DOCUMENT: dict[str, Any] = json.loads(asyncapi())
CHANNEL = DOCUMENT["channels"]["session"]
EXAMPLES = [example for command in COMMANDS for example in command.examples]


def refs_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in cast("dict[str, Any]", value).items():
            if key == "$ref":
                yield inner
            else:
                yield from refs_in(inner)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from refs_in(inner)


def found_at(ref: str) -> Any:
    value: Any = DOCUMENT
    for step in ref.removeprefix("#/").split("/"):
        value = value[step]
    return value


def test_document_has_its_version_and_known_sections() -> None:
    assert DOCUMENT["asyncapi"] == "3.0.0"
    assert DOCUMENT["info"]["version"] == __version__
    assert json.loads(json.dumps(DOCUMENT)) == DOCUMENT
    assert set(DOCUMENT) == {"asyncapi", "info", "defaultContentType", "channels", "operations", "components"}


def test_every_reference_resolves() -> None:
    refs = set(refs_in(DOCUMENT))
    assert refs
    for ref in refs:
        assert isinstance(found_at(ref), dict), ref


def test_every_schema_is_used() -> None:
    used = {ref.rpartition("/")[2] for ref in refs_in(DOCUMENT) if ref.startswith("#/components/schemas/")}
    assert used == set(DOCUMENT["components"]["schemas"])


def test_every_message_belongs_to_the_channel_and_to_an_operation() -> None:
    messages = DOCUMENT["components"]["messages"]
    assert CHANNEL["messages"] == {name: {"$ref": f"#/components/messages/{name}"} for name in messages}
    of_operations = {ref.rpartition("/")[2] for ref in refs_in(DOCUMENT["operations"]) if "/messages/" in ref}
    assert of_operations == set(messages)
    for name, message in messages.items():
        assert message["name"] == name
        assert message["summary"], name
        assert message["payload"]["$ref"].startswith("#/components/schemas/")


def test_every_operation_has_the_channel_and_messages() -> None:
    assert set(DOCUMENT["operations"]) == {*(command.name for command in COMMANDS), "watch"}
    for operation in DOCUMENT["operations"].values():
        assert operation["action"] in ("send", "receive")
        assert operation["channel"] == {"$ref": "#/channels/session"}
        for ref in (*operation["messages"], *operation.get("reply", {}).get("messages", ())):
            assert ref["$ref"].startswith("#/channels/session/messages/")
        assert operation["messages"]


def test_document_contains_all_commands_and_messages() -> None:
    assert [command.schema for command in COMMANDS] == list(get_args(AnyCommand))
    assert set(Reply.__subclasses__()) < set(SERVER_MESSAGES)
    named = [command.name for command in COMMANDS] + [name_of(schema) for schema in SERVER_MESSAGES]
    assert len(set(named)) == len(named)
    assert list(DOCUMENT["components"]["messages"]) == named


def test_document_contains_no_openapi_keywords() -> None:
    """`discriminator` is an object in OpenAPI and a text in AsyncAPI; tuples are written in another way."""
    text = json.dumps(DOCUMENT)
    assert '"discriminator"' not in text
    assert '"prefixItems"' not in text
    assert '"$defs"' not in text


def test_document_describes_the_websocket_route(tmp_path: Path) -> None:
    settings = load_settings(environ={}, overrides={("store", "data"): str(tmp_path)})
    app = create_app(settings, [offer(agents.talker)])
    route, everywhere_else = [route for route in app.routes if isinstance(route, WebSocketRoute)]
    assert everywhere_else.path == "/{path:path}"
    assert CHANNEL["address"] == route.path
    assert set(CHANNEL["parameters"]) == set(route.param_convertors)
    assert set(CHANNEL["bindings"]["ws"]["query"]["properties"]) == {param.name for param in QUERY}


@pytest.mark.parametrize("example", EXAMPLES, ids=json.dumps)
def test_examples_fit_their_schema_and_are_parsed(example: dict[str, Any]) -> None:
    assert Checker(DOCUMENT["components"], f"#/components/schemas/{_schema_of(example)}").faults(example) == []
    assert name_of(type(parse(json.dumps(example), 10_000))) == example["type"]


def _schema_of(example: dict[str, Any]) -> str:
    message = DOCUMENT["components"]["messages"][example["type"]]
    assert example in [one["payload"] for one in message["examples"]]
    return message["payload"]["$ref"].rpartition("/")[2]


async def test_document_is_served(served: Served) -> None:
    response = await served.http.get("/api/v2/asyncapi.json")
    assert response.headers["content-type"] == "application/json"
    assert response.json() == DOCUMENT


async def test_documents_need_a_key(tmp_path: Path) -> None:
    async with serving(agents.talker, data=tmp_path, auth__api_key="secret") as served:
        for path in ("/openapi.json", "/api/v2/asyncapi.json"):
            assert (await served.problem("GET", path))["code"] == "unauthorized"
            allowed = await served.http.get(path, headers={"Authorization": "Bearer secret"})
            assert allowed.status_code == 200


def test_docs_page_describes_the_socket_and_links_the_document() -> None:
    page = docs_page(ENDPOINTS)
    assert 'href="api/v2/asyncapi.json"' in page
    entry = page[page.index("<b>WS</b>") :].partition("</details>")[0]
    assert CHANNEL["address"] in entry
    for name in DOCUMENT["components"]["messages"]:
        assert f"<code>{name}</code>" in entry
    for param in QUERY:
        assert f"?{param.name}=" in entry


def test_protocol_document_lists_all_commands_and_replies() -> None:
    texts = sections(read("docs/protocols/v2.md"), 3)
    commands = {row[0].strip("`"): codes(row[1]) for row in rows(texts["Client messages"])}
    assert list(commands) == [one.name for one in COMMANDS]
    for one in COMMANDS:
        assert {field.name for field in msgspec.structs.fields(one.schema)} <= commands[one.name], one.name
    replies = {row[0].strip("`"): codes(row[1]) for row in rows(texts["Server messages besides session messages"])}
    assert set(replies) == {name_of(reply) for reply in Reply.__subclasses__()}
    for reply in Reply.__subclasses__():
        assert {field.name for field in msgspec.structs.fields(reply)} == replies[name_of(reply)]
