"""Sockets over connections that are cut: each message once, in order; each query starts one run."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection

from limelight.client import Client, ClientError, ConnectionLost, Gap, Limited, Message, NotFound, ServerError, State
from limelight.events import Record
from tests.client.agents import burst, steady
from tests.client.cutting_proxy import assert_complete, cutting_proxy
from tests.client.scripted_server import message, receive, scripted_server, sends, state_frame
from tests.client.socket_helpers import (
    SECONDS,
    assert_deltas_complete,
    complete,
    messages,
    read_run,
    read_until,
    states,
)
from tests.support.server import serving
from tests.system.processes import agents

CUTS = 20


@pytest.mark.requirement("client-socket")
@pytest.mark.parametrize(("agent", "seed"), [(steady, 0), (burst, 0), (burst, 1)])
async def test_socket_messages_are_complete_over_many_cuts(tmp_path: Path, agent: Any, seed: int) -> None:
    async with serving(agent, data=tmp_path / "data") as served, Client(served.url) as straight:
        async with cutting_proxy(served.url, CUTS, (agent.__name__, seed)) as proxy, Client(proxy.url) as client:
            items: list[object] = []
            async with client.connect("s") as socket:
                for _ in range(2):
                    items += await read_run(socket, await socket.send("go"))
            assert proxy.cuts_left < CUTS
        assert complete(items) == [message async for message in straight.messages("s")]
        assert assert_deltas_complete(items) > 2
        assert states(items).count("completed") == 2
        assert isinstance(items[-1], State)
        assert (await straight.session("s")).turns == 2


@pytest.mark.parametrize("agent", [steady, burst])
async def test_socket_records_are_complete_over_many_cuts(tmp_path: Path, agent: Any) -> None:
    async with serving(agent, data=tmp_path / "data") as served, Client(served.url) as straight:
        async with cutting_proxy(served.url, CUTS, agent.__name__) as proxy, Client(proxy.url) as client:
            async with client.connect("s", format="records") as socket:
                run_id = await socket.send("go")
                received = [item for item in await read_run(socket, run_id) if isinstance(item, Record)]
            assert proxy.cuts_left < CUTS
        assert_complete(received, [record async for record in straight.export(run_id)])


async def test_socket_resumes_after_the_last_message() -> None:
    first = sends(state_frame("processing", "r"), message("1"), message("2.1"), close=1012)
    second = sends(state_frame("processing", "r"), message("2"), message("3"), state_frame("completed", "r", "4"))
    async with scripted_server(first, second) as server, Client(server.url) as client, client.connect("s") as socket:
        items = await read_run(socket)
    assert [item.cursor for item in messages(items)] == ["1", "2.1", "2", "3"]
    assert states(items) == ["completed"]
    assert server.queries == [{"format": "v2"}, {"format": "v2", "after": "2.1"}]


async def test_socket_drops_repeated_messages() -> None:
    again = [message(cursor) for cursor in ("1.1", "1.2", "1", "2")]
    first = sends(state_frame("processing", "r"), *again[:3], close=1006)
    second = sends(state_frame("processing", "r"), *again, state_frame("completed", "r", "3"))
    async with scripted_server(first, second) as server, Client(server.url) as client, client.connect("s") as socket:
        assert [item.cursor for item in messages(await read_run(socket))] == ["1.1", "1.2", "1", "2"]


async def test_socket_reports_a_missed_end_after_the_missed_messages() -> None:
    first = sends(state_frame("processing", "r"), message("1"), close=1006)
    second = sends(state_frame("completed", "r", "9"), message("2"), message("3"))
    async with (
        scripted_server(first, second, last="3") as server,
        Client(server.url) as client,
        client.connect("s") as socket,
    ):
        items = await read_run(socket)
        assert [getattr(item, "cursor", "") for item in items] == ["1", "2", "3", "9"]


async def test_socket_resumes_at_its_first_cursor_if_nothing_had_arrived() -> None:
    quiet, second = (
        sends(state_frame("idle", None, "7"), close=1006),
        sends(state_frame("processing", "r", "9"), message("8")),
    )
    async with scripted_server(quiet, second) as server, Client(server.url) as client, client.connect("s") as socket:
        assert states(await read_until(socket, lambda item: isinstance(item, Message))) == ["processing"]
    assert [query.get("after") for query in server.queries] == [None, "7"]


async def test_socket_resumes_at_the_start_of_a_live_run_of_which_nothing_had_arrived(tmp_path: Path) -> None:
    """The server chose the start, and would choose another one now that the run has ended."""
    async with serving(agents.hello, agents.quiet, data=tmp_path / "data") as served, Client(served.url) as client:
        await client.ask("first", agent="hello", session_id="s")
        await client.start("second", agent="quiet", session_id="s")
        async with client.connect("s") as socket:
            await socket.cancel()
            items = await read_run(socket)
            socket._position.after = None  # pyright: ignore[reportPrivateUsage]
            assert socket._connection is not None  # pyright: ignore[reportPrivateUsage]
            socket._connection.abort()  # pyright: ignore[reportPrivateUsage]
            again = await read_until(socket, lambda item: getattr(item, "content", "") == "Stopped")
            assert complete(again) == complete(items)
            assert complete(again)[0].content == "second"


@pytest.mark.requirement("client-socket")
async def test_socket_repeats_a_query_with_its_request_id() -> None:
    async def loses_query(connection: ServerConnection) -> None:
        await connection.send(json.dumps(state_frame()))
        await receive(connection, lambda command: command["type"] == "query")
        connection.transport.abort()

    async def shuts_down(connection: ServerConnection) -> None:
        await connection.send(json.dumps(state_frame()))
        query = await receive(connection, lambda command: command["type"] == "query")
        refusal = {"type": "error", "message": "bye", "error_code": "shutting_down", "request_id": query["request_id"]}
        await connection.send(json.dumps(refusal))
        await connection.close(1012)

    async def accepts(connection: ServerConnection) -> None:
        await connection.send(json.dumps(state_frame()))
        query = await receive(connection, lambda command: command["type"] == "query")
        await connection.send(json.dumps({"type": "accepted", "request_id": query["request_id"], "run_id": "r"}))
        await receive(connection, lambda _: False)

    async with (
        scripted_server(loses_query, shuts_down, 503, accepts) as server,
        Client(server.url) as client,
        client.connect("s") as socket,
    ):
        assert await asyncio.wait_for(socket.send("hi", if_busy="wait"), SECONDS) == "r"
    queries = [command for command in server.received if command["type"] == "query"]
    assert len(queries) == 3
    assert queries[0] == queries[1] == queries[2]


@pytest.mark.requirement("client-unknown-outcome")
async def test_socket_reports_commands_with_unknown_outcome_as_lost() -> None:
    async def loses_query(connection: ServerConnection) -> None:
        await connection.send(json.dumps(state_frame()))
        await receive(connection, lambda command: command["type"] in ("approve", "cancel"))
        connection.transport.abort()

    async with scripted_server(loses_query) as server, Client(server.url) as client, client.connect("s") as socket:
        with pytest.raises(ConnectionLost, match="whether the command took effect is not known"):
            await socket.approve("a")
        with pytest.raises(ConnectionLost, match="whether the command took effect is not known"):
            await socket.cancel()
    assert [command["type"] for command in server.received] == ["approve", "cancel"]


@pytest.mark.parametrize(
    ("code", "frames", "error"),
    [
        (1008, [{"type": "error", "message": "no", "error_code": "agent_mismatch"}], ClientError),
        (4404, [{"type": "error", "message": "no", "error_code": "session_not_found"}], NotFound),
        (4404, [], NotFound),
        (1008, [], ClientError),
    ],
)
async def test_socket_raises_for_final_close_codes(code: int, frames: list[dict[str, str]], error: type) -> None:
    for before in ([], [state_frame(), message("1")]):
        async with scripted_server(sends(*before, *frames, close=code)) as server, Client(server.url) as client:
            with pytest.raises(error, match="no" if frames else "closed the socket"):
                async with client.connect("s") as socket:
                    await read_run(socket)
        assert len(server.queries) == 1


async def test_socket_does_not_create_a_deleted_session_again() -> None:
    gone = {"status": 404, "detail": "Session not found", "code": "session_not_found"}
    async with (
        scripted_server(sends(state_frame(), close=1006), state=gone) as server,
        Client(server.url) as client,
        client.connect("s") as socket,
    ):
        with pytest.raises(NotFound):
            await read_run(socket)
    assert len(server.queries) == 1


async def test_socket_raises_server_errors_at_first_and_retries_them_later() -> None:
    async with scripted_server(503) as server, Client(server.url) as client:
        with pytest.raises(ServerError, match="not now"):
            await client.connect("s").__aenter__()
    async with (
        scripted_server(sends(state_frame(), close=1006), 502, 503, sends(state_frame(), message("1"))) as server,
        Client(server.url) as client,
        client.connect("s") as socket,
    ):
        assert isinstance(await asyncio.wait_for(anext(socket), SECONDS), Message)
    assert len(server.queries) == 4


async def test_socket_raises_a_limit_at_first_and_retries_it_later() -> None:
    """With close code 1013, and with 1008 of older servers."""
    full = {"type": "error", "message": "too many", "error_code": "too_many_streams", "retry_after": 1}
    async with scripted_server(sends(full, close=1013)) as server, Client(server.url) as client:
        with pytest.raises(Limited, match="too many"):
            await client.connect("s").__aenter__()
    busy = {"type": "error", "message": "not now", "error_code": "store_unavailable", "retry_after": 1}
    async with (
        scripted_server(
            sends(state_frame(), close=1006),
            sends(busy, close=1013),
            sends(full, close=1008),
            sends(state_frame(), message("1")),
        ) as server,
        Client(server.url) as client,
        client.connect("s") as socket,
    ):
        assert isinstance(await asyncio.wait_for(anext(socket), SECONDS), Message)
    assert len(server.queries) == 4


async def test_socket_gives_up_after_its_time_limit() -> None:
    async with (
        scripted_server(sends(state_frame(), close=1006), 503) as server,
        Client(server.url, give_up_seconds=0.3) as client,
        client.connect("s") as socket,
    ):
        with pytest.raises(ConnectionLost, match=r"gave up after 0\.3 s"):
            await read_run(socket)
        with pytest.raises(ConnectionLost, match="gave up"):
            await socket.send("hi")


async def test_socket_reconnects_after_silence_but_not_while_pings_are_answered() -> None:
    came_back = asyncio.Event()

    async def deaf(connection: ServerConnection) -> None:
        await connection.send(json.dumps(state_frame()))
        connection.transport.pause_reading()
        await came_back.wait()
        connection.transport.abort()

    async def late(connection: ServerConnection) -> None:
        came_back.set()
        await connection.send(json.dumps(state_frame()))
        await asyncio.sleep(0.5)  # five times the timeout
        await connection.send(json.dumps(message("1")))
        await receive(connection, lambda _: False)

    async with (
        scripted_server(deaf, late) as server,
        Client(server.url, timeout=0.1) as client,
        client.connect("s") as socket,
    ):
        assert isinstance(await asyncio.wait_for(anext(socket), SECONDS), Message)
    assert len(server.queries) == 2


async def test_socket_ignores_new_frame_types_and_raises_for_new_events() -> None:
    newer = [
        {"type": "weather"},
        {**message("1", "x" * 2_000_000), "mood": "good"},
        {"type": "gap", "from": 2, "to": 5},
    ]
    strange = {"session_id": "s", "cursor": "6", "seq": 6, "run_id": "r", "at": 0, "event": {"kind": "exploded"}}
    async with (
        scripted_server(sends(state_frame(), *newer, strange)) as server,
        Client(server.url) as client,
        client.connect("s") as socket,
    ):
        message_item = await anext(socket)
        assert isinstance(message_item, Message)
        assert len(message_item.content) == 2_000_000
        assert await anext(socket) == Gap(2, 5)
        with pytest.raises(ClientError, match="is the client older"):
            await anext(socket)


async def test_socket_does_not_follow_a_redirect_with_its_key() -> None:
    async with scripted_server(307) as server, Client(server.url, key="secret") as client:
        with pytest.raises(ClientError, match="does not seem"):
            await client.connect("s").__aenter__()
