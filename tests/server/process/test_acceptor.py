"""Bounds of connections, over real sockets: clients with thousands of connections do not keep others out.

Each test uses addresses of its own from 127.0.0.0/8.
"""

import asyncio
import errno
import gc
import json
import socket
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from limelight.server.process import connection_table
from limelight.server.process.acceptor import MAX_OPENED_OF_ADDRESS, Acceptor
from limelight.server.process.uvicorn_protocols import HttpConnection
from limelight.server.token_bucket import TokenBuckets
from tests.server.keyed_server import KeyedServer, serving_keys
from tests.server.prometheus import MetricsReader
from tests.server.raw_connection import SECONDS, Wire, disconnect
from tests.support import agents
from tests.support.server import Served, asking
from tests.support.wait import eventually

HEALTH = b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
MALLORY, ANN = "127.0.0.66", "127.0.0.77"
TCP_ESTABLISHED = 1


@asynccontextmanager
async def keyed_server(data: Path, **settings: object) -> AsyncGenerator[KeyedServer]:
    """A server that trusts no proxy, so that the addresses of this machine have a rate too."""
    options: dict[str, Any] = {"server__trusted_proxies": [], **settings}
    async with serving_keys(data, agents.echo, agents.patient, agents.asker, **options) as keyed:
        keyed.key("somebody")
        yield keyed


@asynccontextmanager
async def one_connection_server(data: Path, **settings: object) -> AsyncGenerator[KeyedServer]:
    """A server that opens one connection of each address; further ones wait, however long the test takes."""
    async with keyed_server(data, **settings) as keyed:
        keyed.served.runtime.connections._new = TokenBuckets(1, 0, monotonic)  # pyright: ignore[reportPrivateUsage]
        yield keyed


def port_of(served: Served) -> int:
    return int(served.url.rpartition(":")[2])


@asynccontextmanager
async def connected(served: Served, address: str = "127.0.0.1") -> AsyncGenerator[Wire]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(served), local_addr=(address, 0))
    try:
        yield Wire(reader, writer)
    finally:
        await disconnect(writer)


async def answered(served: Served, address: str) -> bool:
    """Whether a client at this address gets an answer."""
    async with connected(served, address) as wire:
        wire.writer.write(HEALTH)
        return (await wire.answer())[0] == 200


def stream(session_id: str, headers: dict[str, str], agent: str = "patient") -> bytes:
    return post("/chat/stream", headers, asking("go", agent=agent, session_id=session_id))


def post(path: str, headers: dict[str, str], body: object) -> bytes:
    content = json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", "host: 127.0.0.1", "content-type: application/json"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, f"content-length: {len(content)}", "", ""]).encode() + content


@pytest.mark.requirement("connections-bounded")
async def test_silent_connections_of_an_address_do_not_block_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_table, "MIN_AGE_SECONDS", 0.2)
    limits = {"limits__connections": 60, "limits__connections_per_address": 20}
    async with keyed_server(tmp_path, **limits) as keyed, AsyncExitStack() as stack:
        served = keyed.served
        reader = MetricsReader(served, keyed.headers("root", "admin"))
        await reader.read()
        for _ in range(25):
            await stack.enter_async_context(connected(served, MALLORY))
        await eventually(lambda: served.runtime.connections.counts()["anonymous"] == 20)
        assert await answered(served, ANN)
        assert await answered(served, MALLORY)
        assert served.runtime.connections.counts()["anonymous"] <= 20
        assert (await reader.changed("limelight_connections_closed_total"))[
            "limelight_connections_closed_total{reason=address}"
        ] >= 1


@pytest.mark.requirement("connections-bounded")
async def test_open_streams_survive_a_flood_of_connections_from_many_addresses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_table, "MIN_AGE_SECONDS", 0.2)
    async with keyed_server(tmp_path, limits__connections=20) as keyed, AsyncExitStack() as stack:
        served = keyed.served
        watching = await stack.enter_async_context(connected(served, ANN))
        watching.writer.write(stream("s", keyed.headers("ann")))
        async with asyncio.timeout(SECONDS):
            await watching.reader.readuntil(b"Working")
        for number in range(21):
            await stack.enter_async_context(connected(served, f"127.0.1.{number + 1}"))
        await eventually(lambda: len(served.runtime.connections) == 20)
        assert await answered(served, "127.0.0.78")
        assert served.runtime.connections.counts()["user"] == 1
        assert served.runtime.hub.viewers == 1


async def test_address_that_connects_too_fast_waits_and_others_do_not(tmp_path: Path) -> None:
    async with one_connection_server(tmp_path) as keyed, AsyncExitStack() as stack:
        served = keyed.served
        wires = [await stack.enter_async_context(connected(served, MALLORY)) for _ in range(3)]
        await eventually(lambda: len(served.runtime.connections) == 1)
        assert await answered(served, ANN)
        acceptor = acceptor_of(served)
        assert acceptor.waiting == 2
        for wire in wires:
            wire.writer.close()
        await eventually(lambda: acceptor.waiting == 0)


async def test_too_many_waiting_connections_are_closed_the_oldest_first(tmp_path: Path) -> None:
    async with one_connection_server(tmp_path, limits__connections=16) as keyed, AsyncExitStack() as stack:
        wires = [await stack.enter_async_context(connected(keyed.served, MALLORY)) for _ in range(4)]
        async with asyncio.timeout(SECONDS):
            assert await wires[1].reader.read() == b""
        assert acceptor_of(keyed.served).waiting == 2


@pytest.mark.requirement("connections-bounded")
async def test_connections_that_an_address_opens_at_once_do_not_delay_those_of_another_address(tmp_path: Path) -> None:
    async with keyed_server(tmp_path) as keyed, AsyncExitStack() as stack:
        acceptor = acceptor_of(keyed.served)
        order: list[str] = []
        open_one = acceptor._open  # pyright: ignore[reportPrivateUsage]

        def note(connection: socket.socket, peer: str, group: str) -> bool:
            order.append(peer)
            return open_one(connection, peer, group)

        acceptor._open = note  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
        for number in range(101):  # without a pause: they are all in the queue of the kernel
            client = stack.enter_context(socket.socket())
            client.bind((MALLORY if number < 100 else ANN, 0))
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", port_of(keyed.served)))
        await eventually(lambda: len(order) == 101)
        assert order.index(ANN) < 3 * MAX_OPENED_OF_ADDRESS
        assert acceptor.waiting == 0


@pytest.mark.requirement("stop-not-limited")
async def test_stop_does_not_wait_behind_connections_of_its_address(tmp_path: Path) -> None:
    async with one_connection_server(tmp_path) as keyed, AsyncExitStack() as stack:
        served, ann = keyed.served, keyed.headers("ann")
        watching = await stack.enter_async_context(connected(served, ANN))
        watching.writer.write(stream("s", ann))
        async with asyncio.timeout(SECONDS):
            await watching.reader.readuntil(b"Working")
        run_id = next(iter(served.runtime.control.live_runs)).run.run_id
        acceptor = acceptor_of(served)
        for path in ("/sessions", "/runs/run_unknown/cancel", f"/runs/{run_id}/approvals/unknown"):
            waiting = await stack.enter_async_context(connected(served, ANN))
            waiting.writer.write(post(path, ann, {}))
        stop = await stack.enter_async_context(connected(served, ANN))
        await eventually(lambda: acceptor.waiting == 4)
        stop.writer.write(post(f"/runs/{run_id}/cancel", ann, {}))
        status, answer = await stop.answer()
        assert (status, json.loads(answer)["state"]) == (200, "cancelled")
        assert acceptor.waiting == 3


@pytest.mark.requirement("stop-not-limited")
async def test_decision_does_not_wait_behind_connections_of_its_address(tmp_path: Path) -> None:
    async with one_connection_server(tmp_path) as keyed, AsyncExitStack() as stack:
        served, ann = keyed.served, keyed.headers("ann")
        watching = await stack.enter_async_context(connected(served, ANN))
        watching.writer.write(stream("s", ann, "asker"))
        await eventually(lambda: [1 for live in served.runtime.control.live_runs if live.execution.grammar.approvals])
        execution = next(iter(served.runtime.control.live_runs)).execution
        (approval_id,) = execution.grammar.approvals
        await stack.enter_async_context(connected(served, ANN))
        acceptor = acceptor_of(served)
        await eventually(lambda: acceptor.waiting == 1)
        decision = await stack.enter_async_context(connected(served, ANN))
        path = f"/runs/{execution.run.run_id}/approvals/{approval_id}"
        decision.writer.write(post(path, ann, {"decision": "approve"}))
        assert (await decision.answer())[0] == 200
        assert acceptor.waiting == 1


async def test_waiting_connection_whose_client_leaves_is_closed(tmp_path: Path) -> None:
    async with one_connection_server(tmp_path) as keyed, AsyncExitStack() as stack:
        wires = [await stack.enter_async_context(connected(keyed.served, MALLORY)) for _ in range(2)]
        acceptor = acceptor_of(keyed.served)
        await eventually(lambda: acceptor.waiting == 1)
        wires[1].writer.close()
        await eventually(lambda: acceptor.waiting == 0)


def acceptor_of(served: Served) -> Acceptor:
    acceptors: list[Acceptor] = [one for one in gc.get_objects() if type(one) is Acceptor]
    (found,) = [one for one in acceptors if one._table is served.runtime.connections]  # pyright: ignore[reportPrivateUsage]
    return found


@pytest.mark.requirement("connections-bounded")
async def test_client_that_has_left_costs_no_protocol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[HttpConnection] = []
    begin = HttpConnection.connection_made
    monkeypatch.setattr(HttpConnection, "connection_made", lambda self, t: (made.append(self), begin(self, t)))  # pyright: ignore
    async with keyed_server(tmp_path) as keyed:
        for _ in range(50):
            with socket.create_connection(("127.0.0.1", port_of(keyed.served)), SECONDS) as left:
                left.sendall(HEALTH)
        assert await answered(keyed.served, ANN)
        assert len(made) == 1


@pytest.mark.requirement("connections-bounded")
async def test_clients_that_connect_while_the_loop_is_busy_wait_in_the_queue_of_the_kernel(tmp_path: Path) -> None:
    """A full queue drops their packets, and they try again after a second."""
    async with keyed_server(tmp_path) as keyed, AsyncExitStack() as stack:
        for _ in range(300):  # without a pause: the loop accepts none of them
            client = stack.enter_context(socket.socket())
            client.settimeout(SECONDS)
            client.bind((MALLORY, 0))
            client.setblocking(False)
            assert client.connect_ex(("127.0.0.1", port_of(keyed.served))) == errno.EINPROGRESS
            client.settimeout(0.5)
            assert client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == TCP_ESTABLISHED


async def test_listening_socket_is_served_again_after_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with keyed_server(tmp_path) as keyed:
        acceptor = acceptor_of(keyed.served)
        acceptor._pause(OSError(24, "too many open files"))  # pyright: ignore[reportPrivateUsage]
        assert await answered(keyed.served, ANN)


@pytest.mark.requirement("connections-bounded")
async def test_unauthenticated_input_of_all_connections_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_table, "MAX_INPUT_BYTES", 100_000)
    half = b"GET /sessions HTTP/1.1\r\nhost: 127.0.0.1\r\nx-long: " + b"x" * 30_000
    async with keyed_server(tmp_path) as keyed, AsyncExitStack() as stack:
        served = keyed.served
        for _ in range(8):
            wire = await stack.enter_async_context(connected(served, MALLORY))
            wire.writer.write(half)
        small = await stack.enter_async_context(connected(served, ANN))
        small.writer.write(HEALTH[:-2])
        await eventually(lambda: served.runtime.connections.counts()["anonymous"] <= 4)
        small.writer.write(b"\r\n")
        assert (await small.answer())[0] == 200


@pytest.mark.requirement("connections-bounded")
async def test_user_with_too_many_connections_can_still_stop_a_run(tmp_path: Path) -> None:
    async with keyed_server(tmp_path, limits__connections_per_user=2) as keyed, AsyncExitStack() as stack:
        served, ann = keyed.served, keyed.headers("ann")
        for number in range(2):
            wire = await stack.enter_async_context(connected(served))
            wire.writer.write(stream(f"s{number}", ann))
            async with asyncio.timeout(SECONDS):
                await wire.reader.readuntil(b"Working")
        refused = await served.problem("GET", "/sessions", headers=ann)
        assert (refused["status"], refused["code"], refused["retry_after"] > 0) == (429, "too_many_connections", True)
        assert (await served.http.get("/sessions", headers=keyed.headers("ben"))).status_code == 200
        run_id = next(iter(served.runtime.control.live_runs)).execution.run.run_id
        stopped = await served.http.post(f"/runs/{run_id}/cancel", headers=ann)
        assert stopped.json()["state"] == "cancelled"


@pytest.mark.requirement("backend-pool")
async def test_flood_of_a_user_of_a_backend_does_not_use_the_bounds_of_its_other_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All users share the pool of one backend, as those of Open WebUI do."""
    monkeypatch.setattr(connection_table, "MIN_AGE_SECONDS", 3600)  # a busy machine may take long to authenticate them
    limits = {"connections_per_address": 3, "connections_per_user": 3, "requests_per_minute": 20, "streams_per_user": 4}
    settings = {f"limits__{name}": value for name, value in limits.items()}
    async with keyed_server(tmp_path, **settings) as keyed, AsyncExitStack() as stack:
        served, backend = keyed.served, keyed.headers("open-webui", "use", "on-behalf-of")
        ann, ben = ({**backend, "x-limelight-user-id": name} for name in ("ann", "ben"))
        for number in range(8):
            wire = await stack.enter_async_context(connected(served))
            wire.writer.write(stream(f"s{number}", {**backend, "x-limelight-user-id": f"user-{number}"}))
            async with asyncio.timeout(SECONDS):
                await wire.reader.readuntil(b"Working")
        flood = await asyncio.gather(*(served.http.get("/sessions", headers=ann) for _ in range(60)))
        assert [reply.status_code for reply in flood].count(429) == 40
        assert (await served.http.get("/sessions", headers=ben)).status_code == 200
        assert (await served.http.post("/chat", json=asking("hi"), headers=ben)).status_code == 200
        assert served.runtime.connections.counts()["user"] == 0


@pytest.mark.requirement("forwarded-address")
async def test_bounds_behind_a_proxy_are_those_of_each_client(tmp_path: Path) -> None:
    settings = {"limits__connections_per_address": 3, "server__trusted_proxies": ["127.0.0.1"]}
    async with keyed_server(tmp_path, **settings) as keyed, AsyncExitStack() as stack:
        served = keyed.served

        async def request(client: str) -> Wire:
            wire = await stack.enter_async_context(connected(served))
            wire.writer.write(HEALTH[:-2] + f"x-forwarded-for: {client}\r\n\r\n".encode())
            assert (await wire.answer())[0] == 200
            return wire

        ann = await request("203.0.113.77")
        flood = [await request(f"10.9.8.{number}, 203.0.113.66") for number in range(5)]
        for wire in flood[:2]:
            async with asyncio.timeout(SECONDS):
                assert await wire.reader.read() == b""
        for wire in (ann, *flood[2:]):
            wire.writer.write(HEALTH)
            assert (await wire.answer())[0] == 200
