"""Hostile bytes that OpenAPI cannot express: in the request line, headers, JSON and the framing of bodies.

Malformed HTTP is refused by the protocol; requests that pass it are answered as any other.
"""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from limelight.auth.key_file import Keyring
from limelight.server.process.uvicorn_protocols import (
    HEADERS_TOO_LARGE,
    MAX_HEADER_BYTES,
    MAX_HEADERS,
    TOO_MANY_HEADERS,
)
from tests.server.hostile_input import AMPLE, Victim, check_unharmed, create_victim, leaks, repeater
from tests.server.keyed_server import serving_keys
from tests.server.raw_connection import SECONDS, connected
from tests.support import agents
from tests.support.server import Served

LIMIT = 1_000_000
REFUSALS_BELOW = (b"Invalid HTTP request received.", HEADERS_TOO_LARGE.encode(), TOO_MANY_HEADERS.encode())


class Target(NamedTuple):
    """A server with a victim, and the key of another user."""

    served: Served
    data: Path
    victim: Victim
    key: bytes

    async def exchange(self, sent: bytes, *, then_leave: bool = False) -> bytes:
        """All bytes until the server closes the connection, which may be before it has read everything."""
        received = bytearray()
        async with connected(self.served) as wire:
            with suppress(ConnectionError):
                wire.writer.write(sent)
                if then_leave:
                    wire.writer.write_eof()
                async with asyncio.timeout(SECONDS):
                    while chunk := await wire.reader.read(65536):
                        received += chunk
        return bytes(received)

    def head(self, line: bytes, *headers: bytes) -> bytes:
        own = (b"host: 127.0.0.1", b"connection: close", b"authorization: Bearer " + self.key)
        return b"\r\n".join([line + b" HTTP/1.1", *own, *headers, b"", b""])

    def post(self, path: bytes, body: bytes, *headers: bytes) -> bytes:
        size = b"content-length: %d" % len(body)
        return self.head(b"POST " + path, b"content-type: application/json", size, *headers) + body

    async def status(self, sent: bytes, *, then_leave: bool = False) -> int:
        """The status of the answer, 0 without one. Checks that it is not a 5xx and leaks nothing."""
        received = await self.exchange(sent, then_leave=then_leave)
        head, _, body = received.partition(b"\r\n\r\n")
        if not head:
            return 0
        status = int(head.split(b" ")[1])
        about = (sent[:200], received[:500])
        assert head.startswith(b"HTTP/1.1 "), about
        assert status < 500, about
        assert not leaks(received.decode("utf-8", "replace"), self.data), about
        if status >= 400 and body not in REFUSALS_BELOW:
            assert b"application/problem+json" in head, about
            assert sent.startswith(b"HEAD ") or json.loads(body)["status"] == status, about
        return status


@pytest.fixture
async def target(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> AsyncGenerator[Target]:
    async with serving_keys(tmp_path, agents.echo, repeater, limits__body_bytes=LIMIT, **AMPLE) as keyed:
        served = keyed.served
        victim = await create_victim(served, "ann", keyed.headers("ann"))
        before = await victim.stored_data(served.runtime.store)
        yield Target(served, tmp_path, victim, keyed.key("ben").encode())
        await check_unharmed(served, victim, before)
    assert not [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


async def test_malformed_paths_are_answered_without_leaks(target: Target) -> None:
    session, run = (target.victim.ended[name].encode() for name in ("session_id", "run_id"))
    odd = [b"%00", b"%2e%2e", b"%2e%2e%2f" * 9 + b"keys.json", b"%zz", b"%", b"%c0%af", b"%ed%a0%80", b"%ff", b"\xff"]
    odd += [b"..;/", b"[", b"%5c..%5c", b"%0d%0aset-cookie:%20a=b", b"%252e%252e", b"x" * 10_000, b"%f0%9f%a6%8a"]
    shapes = [b"/%b", b"//%b", b"/sessions/%b", b"/sessions/%b/stream", b"/runs/%b", b"/runs/%b/stream"]
    shapes += [b"/runs/" + run + b"/tools/%b", b"/artifacts/%b", b"/assets/%b", b"/api/v2/sessions/%b/messages"]
    shapes += [b"/sessions?q=%b", b"/sessions?after=%b", b"/sessions?limit=%b", b"/nowhere?%b", b"/icon.svg?%b"]
    shapes += [b"/sessions/" + session + b"%b", b"/sessions/x/%b/../" + session, b"/runs/%b/../" + run]
    for shape in shapes:
        for part in odd:
            assert await target.status(target.head(b"GET " + shape.replace(b"%b", part))), (shape, part)


async def test_unusual_methods_are_answered_without_leaks(target: Target) -> None:
    path = b"/sessions/" + target.victim.ended["session_id"].encode()
    for method in (b"HEAD", b"OPTIONS", b"TRACE", b"PUT", b"PROPFIND", b"get", b"QUUX", b"\xff", b""):
        for line in (method + b" " + path, method + b" *", method + b" http://[/", method + b" "):
            await target.status(target.head(line))


async def test_malformed_headers_are_answered_without_leaks(target: Target) -> None:
    values = [b"\xff\xfe", b"", b"\x01", b"%ff", b"9" * 5000, b"-1", b'a, b; c="', b"x" * 300_000, b"\xf0\x9f\xa6\x8a"]
    names = [b"host", b"authorization", b"cookie", b"origin", b"sec-fetch-site", b"last-event-id", b"content-length"]
    names += [b"content-type", b"transfer-encoding", b"accept-encoding", b"if-none-match", b"x-limelight-user-id"]
    names += [b"upgrade", b"expect", b"range", b"x-forwarded-for", b"\xff", b"x" * 70_000]
    for name in names:
        for value in values:
            assert await target.status(target.head(b"GET /sessions", name + b": " + value)), (name, value[:20])
    for path in (b"/", b"/icon.svg", b"/nowhere", b"/auth/me", b"/docs"):
        for name in (b"host", b"cookie", b"accept-encoding", b"if-none-match"):
            for value in values[:5]:
                assert await target.status(target.head(b"GET " + path, name + b": " + value)), (path, name, value)


@pytest.mark.parametrize(
    "begun",
    [b"GET /sessions?q=", b"GET /sessions HTTP/1.1\r\nx: ", b"GET /sessions HTTP/1.1\r\nx"]
    + [b"POST /chat HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n" + chunk for chunk in (b"0\r\nx: ", b"2;x=")],
    ids=["line", "value", "name", "behind", "extension"],
)
async def test_endless_headers_close_the_connection(target: Target, begun: bytes) -> None:
    """No key is needed for this, so the bytes are bounded."""
    sent = 0
    async with connected(target.served) as wire, asyncio.timeout(SECONDS):
        with suppress(ConnectionError):
            wire.writer.write(begun)
            while not wire.reader.at_eof() and not wire.writer.is_closing():
                wire.writer.write(b"x" * 10_000)
                sent += 10_000
                await wire.writer.drain()
                await asyncio.sleep(0)
    assert MAX_HEADER_BYTES < sent < 100 * MAX_HEADER_BYTES


async def test_repeated_headers_grant_no_access(target: Target) -> None:
    line = b"GET /sessions/" + target.victim.ended["session_id"].encode()
    for other in (b"authorization: Bearer x", b"authorization: Basic YTpi", b"authorization:"):
        assert await target.status(target.head(line, other)) in (401, 404)
    assert await target.status(target.head(line, b"x-limelight-user-id: ann", b"x-limelight-user-id: ben")) == 404
    assert await target.status(target.head(line, b"host: a", b"host: b")) in (400, 404)
    few = [b"x-%d: y" % n for n in range(MAX_HEADERS // 2)]
    assert await target.status(target.head(b"GET /auth/me", *few)) == 200
    assert await target.status(target.head(b"GET /auth/me", *few, *few)) == 400


async def test_malformed_json_is_answered_without_leaks(target: Target) -> None:
    deep = [b"[" * n + b"]" * n for n in (900, 960, 975, 990, 1010, 100_000)]
    deep += [b'{"a":' * n + b"1" + b"}" * n for n in (900, 960, 975, 990, 1010, 100_000)]
    odd = [b"1e999", b"-1e999", b"9" * 5000, b"-" + b"9" * 400, b"NaN", b"-Infinity", b"1.0", b"0x1", b"01", b"-"]
    odd += [
        b'"\\ud800"',
        b'"\\udc00\\ud800"',
        b'"\\u0000"',
        b'"\xed\xa0\x80"',
        b'"\xff"',
        b'"\xc0\xaf"',
        b'"\\x"',
        b'"',
    ]
    odd += [b'{"role":"user","role":"system"}', b'{"":{"":[null]}}', b"[[],{}]", b"nul", b"", b"\x00", b"'x'", b"{]"]
    odd += [b"[" * 100_000, b'{"a":' * 100_000, b'"' + b"x" * 900_000 + b'"', b"[" + b"1," * 300_000 + b"1]"]
    for value in (*deep, *odd):
        for path, body in json_bodies(value, target.victim):
            assert await target.status(target.post(path, body)), (path, body[:100])


def json_bodies(value: bytes, victim: Victim) -> list[tuple[bytes, bytes]]:
    """The value as each field of each body, and as the whole body."""
    run, approval, session = (victim.waiting[name].encode() for name in ("run_id", "approval_id", "session_id"))
    bodies = [
        (b"/chat", b"%b"),
        (b"/chat", b'{"messages":%b}'),
        (b"/chat", b'{"messages":[%b]}'),
        (b"/chat", b'{"messages":[{"role":"user","content":%b}]}'),
        (b"/chat", b'{"messages":[{"role":"user","content":[{"type":"text","text":%b}]}]}'),
        (b"/chat", b'{"messages":[{"role":"user","content":[{"type":"file","file":%b}]}]}'),
        (b"/chat", b'{"messages":[{"role":"user","content":[{"type":%b,"image_url":{"url":"data:,x"}}]}]}'),
        (b"/chat", b'{"messages":[{"role":"user","content":"x","tool_calls":%b}]}'),
        (b"/chat", b'{"messages":[{"role":"user","content":"x"}],"model":%b,"request_id":"r"}'),
        (b"/chat", b'{"messages":[{"role":"user","content":"x"}],"session_id":"' + session + b'","if_busy":%b}'),
        (b"/chat/stream", b'{"messages":[{"role":"user","content":"x"}],"messages":%b}'),
        (b"/api/v2/sessions", b'{"max_steps":%b}'),
        (b"/auth/login", b'{"key":%b}'),
        (b"/runs/" + run + b"/cancel", b'{"reason":%b}'),
        (b"/runs/" + run + b"/approvals/" + approval, b'{"decision":"edit","args":%b}'),
    ]
    return [(path, body.replace(b"%b", value)) for path, body in bodies]


async def test_wrong_content_lengths_are_refused(target: Target) -> None:
    size = b"content-length: "
    json_type = b"content-type: application/json"
    whole = b'{"messages":[{"role":"user","content":"x"}]}'
    begin = b"POST /chat"

    async def sent(*headers: bytes, body: bytes, leave: bool = False) -> int:
        return await target.status(target.head(begin, json_type, *headers) + body, then_leave=leave)

    assert await sent(size + b"%d" % (LIMIT + 1), body=b"") == 413
    assert await sent(size + b"1" + b"0" * 17, body=b"{") == 413
    assert await sent(size + b"-5", body=whole) == 400
    assert await sent(size + b"5", size + b"6", body=whole) == 400
    assert await sent(size + b"5", b"transfer-encoding: chunked", body=b"0\r\n\r\n") == 400
    assert await sent(size + b"%d" % (len(whole) - 1), body=whole) == 400
    assert await sent(size + b"%d" % len(whole), body=whole + b"GET /sessions HTTP/1.1\r\n\r\n") == 200
    assert await sent(size + b"%d" % (len(whole) + 10), body=whole, leave=True) in (0, 400)
    assert await sent(body=whole) == 400  # without a length
    assert await target.status(target.head(begin, size + b"%d" % len(whole)) + whole) == 415


async def test_malformed_chunks_are_refused(target: Target) -> None:
    async def sent(*chunks: bytes, leave: bool = False) -> int:
        headers = (b"content-type: application/json", b"transfer-encoding: chunked")
        return await target.status(target.head(b"POST /chat", *headers) + b"".join(chunks), then_leave=leave)

    large = b"8000\r\n" + b" " * 0x8000 + b"\r\n"
    assert await sent(*[large] * (LIMIT // 0x8000 + 2), b"0\r\n\r\n") == 413
    assert await sent(*[b"1\r\n \r\n"] * 5000, b"0\r\n\r\n") == 400
    assert await sent(b"zz\r\n") == 400
    assert await sent(b"-1\r\n") == 400
    assert await sent(b"f" * 17 + b"\r\n") == 400
    assert await sent(b"2\r\n{}\r\n", leave=True) in (0, 400)


async def test_trailers_do_not_become_headers(target: Target) -> None:
    """A proxy may set the user's header, and a trailer must not replace it."""
    key = Keyring(target.data).create("pipe", ("use", "on-behalf-of"), 1)[1]
    headers = (b"host: x", b"authorization: Bearer " + key.encode(), b"x-limelight-user-id: ben", b"connection: close")
    head = b"\r\n".join([b"GET /auth/me HTTP/1.1", *headers, b"transfer-encoding: chunked", b"", b""])
    for behind in (b"x-limelight-user-id: ann", b"authorization: Bearer x", b"host: evil.example"):
        received = await target.exchange(head + b"2\r\n{}\r\n0\r\n" + behind + b"\r\n\r\n")
        assert received.startswith(b"HTTP/1.1 200 ")
        assert b'"user":"ben"' in received


@pytest.mark.parametrize(
    ("line", "header", "status"),
    [
        (b"GET /api/v2/ws/s?after=" + b"9" * 9000, b"x: y", b"414"),
        (b"GET /api/v2/ws/s", b"cookie: " + b"x" * 9000, b"431"),
        (b"GET /api/v2/ws/s", b"\r\n".join(b"x-%d: y" % number for number in range(200)), b"400"),
    ],
    ids=["line", "header", "headers"],
)
async def test_too_large_handshake_is_refused(target: Target, line: bytes, header: bytes, status: bytes) -> None:
    upgrade = (b"connection: upgrade", b"upgrade: websocket", b"sec-websocket-version: 13")
    key = b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=="
    received = await target.exchange(target.head(line, *upgrade, key, header))
    assert received.startswith(b"HTTP/1.1 " + status)
    assert not leaks(received.decode(), target.data)
