"""Hostile input on the socket: in the handshake, in every field of every command, and in malformed messages.

Every message is answered, or refused with a code; the socket stays open, and no data of another user is sent.
"""

import asyncio
import json
import logging
import random
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from limelight import errors
from limelight.server.process.uvicorn_server import MAX_FRAME_BYTES
from limelight.server.v2.asyncapi import COMMANDS, DESCRIPTION, QUERY, CommandSpec, asyncapi, name_of
from tests.server.hostile_input import (
    AMPLE,
    SECRET,
    Victim,
    begin,
    check_unharmed,
    create_victim,
    generation,
    leaks,
    repeater,
)
from tests.server.keyed_server import Headers, serving_keys
from tests.server.v2.socket_client import Json, Socket, socket
from tests.support import agents
from tests.support.json_schemas import Checker
from tests.support.server import Served

SECONDS = 20
COMPONENTS: dict[str, Any] = json.loads(asyncapi())["components"]
CHECKERS = {
    command.name: Checker(COMPONENTS, COMPONENTS["messages"][command.name]["payload"]["$ref"]) for command in COMMANDS
}
REPLIES = {command.name: {name_of(schema) for schema in command.replies} for command in COMMANDS}
CLOSE_CODES = {int(code) for code in re.findall(r"\b\d{4}\b", DESCRIPTION)}
CODES = {
    one.code for one in vars(errors).values() if isinstance(one, type) and issubclass(one, errors.LimelightError)
} - {"internal"}
FORMATS: list[dict[str, str]] = [{}, {"format": "records"}, {"format": "records", "packed": "1"}]

DEPTHS = (100, 900, 970, 980, 985, 990, 1010, 100_000)
VALUES = (
    *("null", "true", "0", "-1", "1.0", "1.5", "2e3", "1e999", "-1e999", "NaN", "-Infinity", "9" * 30, "9" * 5000),
    *("9223372036854775807", "9223372036854775808", "18446744073709551616", "-9223372036854775809", "01", "0x1", "-"),
    *('""', '" "', '"x"', '"57.1"', '"0"', '"-1"', '"1.1.1"', '"１"', '"①"', f'"{"9" * 32}"', f'"{"9" * 5000}"'),
    *('"wait"', '"cancel"', '"error"', '"edit"', '"approve"', '"reject"', '"query"', f'"{"x" * 100_000}"'),
    *(
        '"\\ud800"',
        '"\\udc00\\ud800"',
        '"\\u0000"',
        '"\\u202e\\ufeff"',
        '"\U0010ffff\u0301\u200d"',
        '"\\x"',
        '"',
        "'x'",
    ),
    *("[]", "{}", "[1]", '{"a":1}', '{"type":"ping"}', '[{"type":"ping"}]', "[", "{", "]", "", "nul", "\ufeff1"),
    *("[" * depth + "]" * depth for depth in DEPTHS),
    *('{"a":' * depth + "1" + "}" * depth for depth in DEPTHS),
)
"""JSON values, and texts that are not JSON."""
ODD_NAMES = (
    "%00",
    "%ff",
    "%zz",
    "%2e%2e",
    "..",
    "%2e%2e%2fx",
    "%c0%af",
    "%ed%a0%80",
    "a%0d%0ab",
    "x" * 129,
    "%20",
    "é",
)


class Target(NamedTuple):
    """A server with a victim, and the key of another user."""

    served: Served
    data: Path
    victim: Victim
    headers: Headers

    @asynccontextmanager
    async def attacker(self, session_id: str, **query: str) -> AsyncGenerator["Attacker"]:
        async with socket(self.served, session_id, headers=self.headers, **query) as connected:
            attacker = Attacker(connected, self.data)
            await attacker.exchange('{"type":"ping"}')
            yield attacker
            assert "pong" in [frame.get("type") for frame in await attacker.exchange('{"type":"ping"}')]


class Attacker:
    """Sends messages, and checks all frames that come back."""

    def __init__(self, connected: Socket, data: Path) -> None:
        self.connection = connected.connection
        self._data = data
        self._sent = 0

    async def exchange(self, message: str | bytes) -> list[Json]:
        """The frames that answer a message. A second message with a unique error marks their end."""
        self._sent += 1
        fence = f"fence-{self._sent}"
        await self.connection.send(message)
        await self.connection.send(json.dumps({"type": fence}))
        found: list[Json] = []
        async with asyncio.timeout(SECONDS):
            while not found or found[-1].get("message") != f"Unknown message type: {fence}":
                found.append(self.check_frame(await self.connection.recv(), message))
        return found[:-1]

    def check_frame(self, received: str | bytes, message: str | bytes) -> Json:
        assert isinstance(received, str)
        about = (message[:200], received[:500])
        assert not leaks(received, self._data), about
        frame = json.loads(received)
        if frame.get("type") == "error":
            assert frame["error_code"] in CODES, about
        return frame

    async def check(self, message: str | bytes) -> None:
        """Check that an undocumented message is refused, and a documented one is answered or refused."""
        found = {frame.get("type") for frame in await self.exchange(message)}
        if "error" not in found:
            name = documented(message)
            assert name is not None, message[:200]
            assert not (replies := REPLIES[name] - {"accepted"}) or replies & found, (message[:200], found)


def documented(message: str | bytes) -> str | None:
    """The name of a message in the document, None if it fits no schema."""
    try:
        value: Any = json.loads(message) if isinstance(message, str) else None
        kind = value["type"]
        return kind if not CHECKERS[kind].faults(value) else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


@pytest.fixture
async def target(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[Target]:
    monkeypatch.setattr("limelight.server.v2.socket.MESSAGE_BURST", 1_000_000)  # these tests send many messages at once
    monkeypatch.setattr("limelight.server.runtime.USER_MESSAGE_BURST", 1_000_000)
    async with serving_keys(tmp_path, agents.echo, repeater, **AMPLE) as keyed:
        served, ann, ben = keyed.served, keyed.headers("ann"), keyed.headers("ben")
        victim = await create_victim(served, "ann", ann)
        before = await victim.stored_data(served.runtime.store)
        yield Target(served, tmp_path, victim, {**ben, "x-limelight-user-id": "ann"})
        await check_unharmed(served, victim, before)
    assert not [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


def fields_of(command: CommandSpec) -> list[str]:
    return ["type", *command.schema.__struct_fields__]


def with_field(example: Json, field: str, value: str) -> str:
    """The example as text, with another value of a field, which need not be JSON."""
    others = [f"{json.dumps(key)}:{json.dumps(kept)}" for key, kept in example.items() if key != field]
    return "{" + ",".join([*others, f'"{field}":{value}']) + "}"


@pytest.mark.parametrize("query", FORMATS, ids=lambda query: "-".join(query.values()) or "v2")
async def test_odd_values_in_every_field_are_answered_or_refused(target: Target, query: dict[str, str]) -> None:
    async with target.attacker("own", **query) as attacker:
        for command in COMMANDS:
            for field in fields_of(command):
                for value in VALUES:
                    await attacker.check(with_field(command.examples[-1], field, value))


@pytest.mark.parametrize("query", FORMATS, ids=lambda query: "-".join(query.values()) or "v2")
async def test_malformed_messages_are_refused(target: Target, query: dict[str, str]) -> None:
    async with target.attacker("own", **query) as attacker:
        for value in VALUES:
            await attacker.check(value)
            await attacker.check(value.encode())
        for text in mangle(random.Random("limelight"), 300):
            await attacker.check(text)


def mangle(chance: random.Random, count: int) -> Iterator[str]:
    """Examples with a part removed, repeated, or replaced."""
    texts = [json.dumps(example) for command in COMMANDS for example in command.examples]
    for _ in range(count):
        text, other = chance.choice(texts), chance.choice(texts)
        start, end = sorted(chance.choices(range(len(text)), k=2))
        yield chance.choice(
            [
                text[:start] + text[end:],
                text[:end] + text[start:],
                text[:start] + other[start:],
                text[:start] + chr(chance.randrange(0xD800)) + text[end:],
            ]
        )


JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=50),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)
FIELDS = sorted({field for command in COMMANDS for field in fields_of(command)} - {"type"})


def message_text(kind: Any, fields: Json, more: Json) -> str:
    return json.dumps({**more, **fields, "type": kind})


MESSAGES = st.builds(
    message_text,
    st.sampled_from(sorted(REPLIES)) | JSON_VALUES,
    st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, JSON_VALUES)),
    st.dictionaries(st.text(max_size=10), JSON_VALUES, max_size=3),
)


@pytest.mark.parametrize("query", FORMATS[:2], ids=lambda query: "-".join(query.values()) or "v2")
async def test_generated_messages_are_answered_or_refused(target: Target, query: dict[str, str]) -> None:
    loop = asyncio.get_running_loop()
    async with target.attacker("own", **query) as attacker:

        @generation(300)
        @given(MESSAGES | st.text(max_size=200) | st.binary(max_size=200))
        def send_one(message: str | bytes) -> None:
            asyncio.run_coroutine_threadsafe(attacker.check(message), loop).result(2 * SECONDS)

        await asyncio.to_thread(send_one)


async def test_odd_decisions_leave_a_readable_log(target: Target) -> None:
    """The log of the session can be read after every decision."""
    tried = [*(("args", value) for value in VALUES)]
    tried += [(field, value) for field in ("decision", "reason") for value in VALUES[::6]]
    for number, (field, value) in enumerate(tried):
        own = await begin(target.served, target.headers, f"own-{number}", "mine")
        answer: Json = {"type": "approve", "approval_id": own["approval_id"], "decision": "edit", "args": {}}
        async with target.attacker(own["session_id"]) as attacker:
            await attacker.check(with_field(answer, field, value))
            await attacker.check('{"type":"cancel"}')
            assert "error" not in {frame.get("type") for frame in await attacker.exchange('{"type":"get_messages"}')}
        for path in (f"/runs/{own['run_id']}", f"/runs/{own['run_id']}/approvals/{own['approval_id']}"):
            response = await target.served.http.get(path, headers=target.headers)
            assert response.status_code == 200, (field, value[:100], response.text)


async def test_approvals_and_requests_of_another_user_are_refused(target: Target) -> None:
    names = target.victim.waiting
    async with target.attacker("own") as attacker, target.attacker(names["session_id"]) as namesake:
        for one in (attacker, namesake):
            for name in ("approval_id", "run_id", "session_id"):
                for text in (
                    json.dumps({"type": "approve", "approval_id": names[name], "session_id": names["session_id"]}),
                    json.dumps({"type": "cancel", "request_id": names[name], "run_id": names["run_id"]}),
                ):
                    assert {frame.get("type") for frame in await one.exchange(text)} == {"error"}


async def handshake(target: Target, path: str) -> list[Json]:
    """The first frames of a socket. Checks that it is opened, or refused with a code."""
    url = f"{target.served.url.replace('http', 'ws', 1)}/api/v2/ws/{path}"
    found: list[Json] = []
    attacker: Attacker | None = None
    try:
        async with asyncio.timeout(SECONDS), connect(url, additional_headers=target.headers, proxy=None) as connection:
            attacker = Attacker(Socket(connection), target.data)
            while not found or found[-1].get("type") == "error":
                found.append(attacker.check_frame(await connection.recv(), path))
            assert "pong" in [frame.get("type") for frame in await attacker.exchange('{"type":"ping"}')]
    except InvalidStatus as refusal:
        assert 400 <= refusal.response.status_code < 500
        assert not leaks(bytes(refusal.response.body or b"").decode(), target.data)
    except ConnectionClosed as closed:
        assert closed.rcvd is not None
        assert (closed.rcvd.code, found[-1].get("type")) == (1008, "error"), path
        assert closed.rcvd.code in CLOSE_CODES
    return found


async def test_odd_handshakes_are_opened_or_refused(target: Target) -> None:
    values = [*ODD_NAMES, *(quote(value[:5000], safe="") for value in VALUES)]
    names = [*(param.name for param in QUERY), "session_id", "user", "%00", ""]
    for name in names:
        for value in values:
            await handshake(target, f"own?{name}={value}")
            await handshake(target, f"own-{name.strip('%')}?format=records&{name}={value}&{name}=x")
    for value in values:
        await handshake(target, value)
        await handshake(target, f"own/{value}")


async def test_session_id_of_another_user_opens_an_own_session(target: Target) -> None:
    for names in (target.victim.waiting, target.victim.ended):
        for query in ("", "?after=0", "?after=1&format=records", "?user=ann", "?owner=ann&user_id=ann"):
            (first,) = (await handshake(target, f"{names['session_id']}{query}"))[:1]
            assert SECRET not in json.dumps(first)
            assert first.get("type") == "error" or first["state"]["cursor"] == "0"


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (b"\xff\xfe", 1007),
        (b'"\xed\xa0\x80"', 1007),
        ([b'"\xf0\x9f', b'"'], 1007),
        (b" " * (MAX_FRAME_BYTES + 1), 1009),
    ],
    ids=["not UTF-8", "surrogate", "fragments", "too large"],
)
async def test_invalid_text_or_too_large_frame_closes_only_its_socket(
    target: Target, message: bytes | list[bytes], code: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with target.attacker("own") as other:
        with pytest.raises(ConnectionClosed) as closed:
            async with asyncio.timeout(SECONDS), socket(target.served, "own", headers=target.headers) as connected:
                await connected.connection.send(message, text=True)
                while True:
                    await connected.connection.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == code
        await other.check('{"type":"get_state"}')
    assert not [record for record in caplog.records if record.exc_info or record.levelno >= logging.WARNING]


async def test_character_that_is_split_over_two_fragments_is_accepted(target: Target) -> None:
    async with socket(target.served, "own", headers=target.headers) as connected:
        text = '{"type":"ping","note":"\N{FOX FACE}"}'.encode()
        await connected.connection.send([text[:-4], text[-4:]], text=True)
        async with asyncio.timeout(SECONDS):
            while json.loads(await connected.connection.recv())["type"] != "pong":
                pass
