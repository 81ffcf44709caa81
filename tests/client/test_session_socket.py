"""A session's socket with a real server: queries, decisions, refusals, closing."""

import asyncio
from pathlib import Path

import pytest

from limelight.client import (
    AlreadyDecided,
    Busy,
    Client,
    ClientError,
    ConnectionLost,
    Message,
    NotFound,
    NotOffered,
    Socket,
    State,
    Unauthorized,
)
from limelight.client.session_socket import QUEUE_SIZE
from limelight.events import Decision, Record
from tests.client.agents import burst
from tests.client.cutting_proxy import assert_complete, response, scripted_responses
from tests.client.socket_helpers import (
    SECONDS,
    assert_deltas_complete,
    complete,
    is_end,
    messages,
    read_run,
    read_until,
    states,
)
from tests.support import agents
from tests.support.server import Served, serving
from tests.support.wait import eventually
from tests.system.processes.server_process import free_port

WORDS = "".join(agents.WORDS)


async def wait_for_approval(socket: Socket[Message]) -> str:
    """Read until the agent requests an approval, and return its id."""
    items = await read_until(socket, lambda item: isinstance(item, Message) and item.message_type == "approval_request")
    return messages(items)[-1].metadata["approval_id"]


async def test_socket_sends_queries_and_yields_messages_and_states(client: Client) -> None:
    async with client.connect("s") as socket:
        assert socket.session_id == "s"
        for number, question in enumerate(["hello", "and again"], start=1):
            run_id = await socket.send(question)
            items = await read_run(socket)
            assert states(items) == ["processing", "completed"]
            assert {item.run_id for item in items if isinstance(item, State)} == {run_id}
            received = messages(items)
            assert (received[0].role, received[0].content, received[0].session_id) == ("user", question, "s")
            assert (received[-1].message_type, received[-1].content) == ("final_answer", WORDS)
            assert isinstance(items[-1], State)
            assert items[-1].message_count == number * len(complete(items))
            assert assert_deltas_complete(items) == 1
        assert (await socket.state()).agent == "talker"
    assert (await client.session("s")).turns == 2


async def test_messages_over_http_equal_those_of_the_socket(client: Client) -> None:
    async with client.connect("s", agent="worker") as socket:
        await socket.send("go")
        received = complete(await read_run(socket))
        assert await socket.last_messages() == received
        assert await socket.last_messages(3) == received[-3:]
        assert await socket.last_messages(3, before=received[-3].cursor) == received[-6:-3]
    assert [message async for message in client.messages("s")] == received
    assert [message async for message in client.messages("s", after=received[9].cursor)] == received[10:]
    assert await client.last_messages("s", 2) == received[-2:]
    with pytest.raises(NotFound):
        await client.last_messages("nobody")


async def test_socket_yields_records_in_the_records_format(client: Client) -> None:
    async with client.connect("s", agent="worker", format="records") as socket:
        run_id = await socket.send("go")
        items = await read_run(socket)
        assert states(items) == ["processing", "completed"]
        received = [item for item in items if isinstance(item, Record)]
        assert_complete(received, [record async for record in client.export(run_id)])
    async with client.connect("s", after=received[4].seq, format="records") as socket:
        assert (await read_run(socket))[:-1] == received[5:]


async def test_socket_with_after_yields_missed_messages_before_the_state(client: Client) -> None:
    async with client.connect("s", agent="worker") as socket:
        await socket.send("go")
        items = await read_run(socket)
    received = messages(items)
    for known in (received[0], received[7], received[-1]):
        async with client.connect("s", after=known.cursor) as socket:
            again = await read_run(socket)
            assert complete(again) == complete(received[received.index(known) + 1 :])
            assert again[-1] == items[-1]


async def test_socket_yields_a_live_run_from_its_start(client: Client) -> None:
    run = await client.start("go", agent="patient", session_id="s")
    async with client.connect("s") as socket:
        first = await anext(socket)
        assert isinstance(first, Message)
        assert first.content == "go"
        await socket.cancel("enough")
        items = await read_run(socket)
        assert states(items) == ["idle"]
        assert (messages(items)[-1].content, messages(items)[-1].metadata["reason"]) == ("Stopped", "enough")
        with pytest.raises(ClientError) as raised:
            await socket.cancel()
        assert (raised.value.status, raised.value.code) == (409, "not_processing")
    assert (await client.run(run.run_id)).state == "cancelled"


async def test_socket_creates_its_session_or_uses_an_existing_one(client: Client) -> None:
    made = await client.open_session("echo", max_steps=7)
    assert (made.agent, made.max_steps, made.state, made.live) == ("echo", 7, "idle", False)
    assert await client.state(made.session_id) == (await client.state(made.session_id))
    async with client.connect(made.session_id, agent="echo") as socket:
        await socket.send("hi")
        assert messages(await read_run(socket))[-1].content.startswith("user:hi")
    async with client.connect(agent="echo", max_steps=9) as socket:
        assert (await socket.state()).max_steps == 9
        assert socket.session_id.startswith("ses_")
        assert await socket.ping() < SECONDS


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        ({"agent": "nobody"}, 422, "invalid"),
        ({"agent": "worker"}, 409, "agent_mismatch"),
        ({"max_steps": 1000}, 422, "invalid"),
        ({"after": "99"}, 400, "bad_cursor"),
        ({"after": "x"}, 400, "bad_cursor"),
        ({"format": "morse"}, 400, "bad_request"),
    ],
)
async def test_connect_with_invalid_arguments_raises(
    client: Client, arguments: dict[str, str], status: int, code: str
) -> None:
    async with client.connect("s", agent="talker"):
        pass
    with pytest.raises(ClientError) as raised:
        async with client.connect("s", **arguments):  # pyright: ignore[reportArgumentType, reportCallIssue]
            raise AssertionError
    assert (raised.value.status, raised.value.code) == (status, code)


async def test_send_to_a_busy_session_raises_or_cancels(client: Client) -> None:
    async with client.connect("s", agent="patient") as socket:
        run_id = await socket.send("go")
        with pytest.raises(Busy) as raised:
            await socket.send("and this")
        assert (raised.value.run_id, raised.value.status) == (run_id, 409)
        with pytest.raises(ClientError, match="required"):
            await socket.send(" ")
        second = await socket.send("instead", if_busy="cancel")
        await read_until(socket, lambda item: isinstance(item, State) and item.live and item.run_id == second)
        assert (await client.run(run_id)).state == "cancelled"


async def test_queued_query_does_not_delay_other_commands(client: Client) -> None:
    async with client.connect("s", agent="patient") as socket:
        await socket.send("one")
        two = asyncio.create_task(socket.send("two", if_busy="wait", request_id="two"))
        await socket.ping()
        three = asyncio.create_task(socket.send("three", if_busy="wait", request_id="three"))
        await socket.ping()
        again = asyncio.create_task(socket.send("two", if_busy="wait", request_id="two-twin"))
        with pytest.raises(NotFound):
            await socket.approve("apr_of_nobody")
        assert not any(task.done() for task in (two, three, again))
        await socket.cancel()
        run_id = await asyncio.wait_for(two, SECONDS)
        assert (await client.run(run_id)).request_id == "two"
        assert not three.done()
        again.cancel()
        await socket.cancel()
        await asyncio.wait_for(three, SECONDS)


async def test_cancel_with_a_request_id_removes_a_queued_query(client: Client) -> None:
    async with client.connect("s", agent="patient") as socket:
        run_id = await socket.send("one", request_id="one")
        two = asyncio.create_task(socket.send("two", if_busy="wait", request_id="two"))
        await socket.ping()
        await socket.cancel("changed my mind", request_id="two")
        with pytest.raises(Busy, match="stopped while it waited"):
            await asyncio.wait_for(two, SECONDS)
        assert (await client.run(run_id)).state == "running"
        with pytest.raises(ClientError, match="not processing that query"):
            await socket.cancel(request_id="two")
        await socket.cancel(request_id="one")
        await read_until(socket, lambda item: isinstance(item, State) and not item.live)
        assert (await client.run(run_id)).state == "cancelled"


@pytest.mark.parametrize("decision", ["approve", "edit", "reject"])
async def test_socket_decides_an_approval(client: Client, decision: Decision) -> None:
    async with client.connect("s", agent="asker") as socket:
        await socket.send("go")
        approval_id = await wait_for_approval(socket)
        args = {"path": "/tmp/y"} if decision == "edit" else None
        assert await socket.decide(approval_id, decision, args=args, reason="because") == decision
        items = await read_run(socket)
        assert messages(items)[-1].content == f"decision: {decision} by local"


async def test_socket_decision_that_is_invalid_or_late_raises(client: Client) -> None:
    async with client.connect("s", agent="asker") as socket:
        await socket.send("go")
        approval_id = await wait_for_approval(socket)
        with pytest.raises(ClientError) as raised:
            await socket.decide(approval_id, "edit")
        assert (raised.value.status, raised.value.code) == (422, "invalid")
        results = await asyncio.gather(socket.approve(approval_id), socket.reject(approval_id), return_exceptions=True)
        assert results[0] == "approve"
        assert isinstance(results[1], AlreadyDecided | ClientError)
        assert not isinstance(results[1], NotOffered)


@pytest.mark.requirement("client-bounded-buffer")
async def test_commands_are_answered_while_the_queue_is_full(tmp_path: Path) -> None:
    """Discarded items are fetched again: each arrives once and in order."""
    async with (
        serving(burst, agents.patient, data=tmp_path / "data") as served,
        Client(served.url) as client,
    ):
        async with client.connect("s", agent="burst", format="records") as socket:
            run_id = await socket.send("go")
            await eventually(lambda: not served.runtime.control.live_run(run_id))
            assert await socket.ping() < SECONDS
            with pytest.raises(ClientError, match="not processing"):
                await socket.cancel()
            second = await socket.send("more", if_busy="wait")
            items = await read_run(socket, second)
        found = [item for item in items if isinstance(item, Record)]
        whole_session = [record for run in (run_id, second) for record in [r async for r in client.export(run)]]
        assert len(found) > 1200
        assert_complete(found, whole_session)


async def test_queued_query_does_not_starve_a_slow_reader(tmp_path: Path) -> None:
    async with serving(burst, data=tmp_path / "data") as served, Client(served.url) as client:
        async with client.connect("s", format="records") as socket:
            first = await socket.send("go")
            waiting = asyncio.create_task(socket.send("next", if_busy="wait"))
            items = await read_until(socket, lambda item: is_end(item) and getattr(item, "run_id", "") == first)
            second = await asyncio.wait_for(waiting, SECONDS)
            items += await read_run(socket, second)
        assert [i.seq for i in items if isinstance(i, Record)] == list(range(1, len(items) - len(states(items)) + 1))


@pytest.mark.requirement("client-bounded-buffer")
async def test_socket_buffers_a_bounded_number_of_items(tmp_path: Path) -> None:
    async with serving(burst, data=tmp_path / "data") as served, Client(served.url) as client:
        run = await client.start("go", session_id="s")
        await run.wait()
        async with client.connect("s", after=0) as socket:
            await anext(socket)
            queue = socket._queue  # pyright: ignore[reportPrivateUsage]
            await eventually(lambda: queue.qsize() >= QUEUE_SIZE)
            assert queue.qsize() <= QUEUE_SIZE + 1
            assert_deltas_complete(await read_run(socket))


async def test_socket_sends_large_queries_and_raises_over_the_limit(tmp_path: Path) -> None:
    async with (
        serving(agents.talker, data=tmp_path / "data", limits__message_bytes=4_000_000) as served,
        Client(served.url) as client,
        client.connect() as socket,
    ):
        await socket.send("x" * 3_000_000)
        assert states(await read_run(socket)) == ["processing", "completed"]
        for size in (5_000_000, 17_000_000):  # over the limit for questions, over that for frames
            with pytest.raises(ClientError) as raised:
                await socket.send("x" * size)
            assert (raised.value.status, raised.value.code) == (413, "body_too_large")
        assert await socket.ping() < SECONDS


async def test_socket_without_a_valid_key_raises(tmp_path: Path) -> None:
    async with serving(agents.echo, data=tmp_path / "data", auth__api_key="secret") as served:
        for key in ("", "wrong"):
            with pytest.raises(Unauthorized) as raised:
                async with Client(served.url, key=key) as client, client.connect("s"):
                    raise AssertionError
            assert (raised.value.status, raised.value.code) == (401, "unauthorized")
        ann = Client(served.url, key="secret", user_id="ann", user_name="Ann")
        async with ann, ann.connect("s") as socket:
            await socket.send("hi")
            assert messages(await read_run(socket))[-1].content == "user:hi for ann/Ann in s"


async def test_socket_of_a_deleted_session_raises_not_found(client: Client) -> None:
    async with client.connect("s", agent="patient") as socket:
        await socket.send("go")
        await client.delete("s")
        with pytest.raises(NotFound, match="deleted") as raised:
            async for _ in socket:  # the end of the run may still arrive
                pass
        assert raised.value.code == "session_not_found"
        with pytest.raises(NotFound, match="deleted"):
            await socket.send("hello?")
        with pytest.raises(NotFound, match="deleted"):
            await anext(socket)
    assert [session async for session in client.sessions()] == []


async def test_socket_to_a_loopback_address_ignores_proxies(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "ws_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    async with Client(served.url) as client, client.connect("s") as socket:
        assert await socket.ping() < SECONDS
    async with Client("http://limelight.example") as client:
        with pytest.raises(ConnectionLost, match="does not answer"):
            await client.connect("s").__aenter__()


async def test_socket_to_a_closed_port_or_without_tls_raises_at_once(served: Served) -> None:
    for url in (f"http://127.0.0.1:{free_port()}", served.url.replace("http", "https")):
        async with Client(url) as client:
            with pytest.raises(ConnectionLost, match="does not answer"):
                await client.connect("s").__aenter__()


async def test_socket_to_a_server_that_is_not_limelight_raises() -> None:
    async with scripted_responses(response("<html>", content_type="text/html")) as server, Client(server.url) as client:
        with pytest.raises(ClientError, match="does not seem to be a Limelight server"):
            await client.connect("s").__aenter__()
    for url in ("ftp://x", "nowhere", "http://[::1", "http://host:port"):
        async with Client(url) as client:
            with pytest.raises(ClientError, match="is not a valid address"):
                await client.connect("s").__aenter__()


@pytest.mark.requirement("client-leaving")
async def test_closed_socket_leaves_the_run_alone(served: Served, client: Client) -> None:
    before = asyncio.all_tasks()
    async with client.connect("s", agent="patient") as socket:
        run_id = await socket.send("go")
        await eventually(lambda: served.runtime.open_streams.count == 1)
    await eventually(lambda: served.runtime.open_streams.count == 0)
    while (item := await anext(socket, None)) is not None:
        assert isinstance(item, Message | State)
    with pytest.raises(ConnectionLost, match="socket is closed"):
        await socket.ping()
    await eventually(lambda: len(asyncio.all_tasks() - before) <= 2)  # those of the run
    assert (await client.run(run_id)).state == "running"
    with pytest.raises(RuntimeError, match="async with"):
        await client.connect("s").ping()
    with pytest.raises(RuntimeError, match="once"):
        await socket.__aenter__()


async def test_closing_the_client_ends_its_sockets(served: Served) -> None:
    client = Client(served.url)
    async with client.connect("s") as socket:
        listening = asyncio.create_task(anext(socket))  # pyright: ignore[reportArgumentType]
        await socket.ping()
        await client.aclose()
        with pytest.raises(ConnectionLost, match="client is closed"):
            await listening
        with pytest.raises(ConnectionLost, match="client is closed"):
            await socket.ping()
    with pytest.raises(ConnectionLost, match="client is closed"):
        await client.connect("s").__aenter__()


async def test_cancelled_caller_does_not_affect_others(client: Client) -> None:
    async with client.connect("s", agent="patient") as socket:
        await socket.send("one")
        two = asyncio.create_task(socket.send("two", if_busy="wait"))
        await socket.ping()
        two.cancel()
        listening = asyncio.create_task(read_run(socket))
        await socket.ping()
        listening.cancel()
        await asyncio.wait({two, listening})
        await socket.cancel()
        assert "idle" in states(await read_run(socket))


async def test_socket_reports_the_end_of_a_run_without_a_last_message(tmp_path: Path) -> None:
    may_end = asyncio.Event()

    async def lingering(messages: object, ctx: object):
        """Answers, and ends later."""
        yield agents.FinalAnswer(content="done")
        await may_end.wait()

    async with serving(lingering, data=tmp_path / "data") as served, Client(served.url) as client:
        async with client.connect("s") as socket:
            await socket.send("go")
            items = await read_until(
                socket, lambda item: isinstance(item, Message) and item.message_type == "final_answer"
            )
        async with client.connect("s", after=messages(items)[-1].cursor) as socket:
            await socket.ping()
            may_end.set()
            assert states(await read_run(socket)) == ["completed"]
