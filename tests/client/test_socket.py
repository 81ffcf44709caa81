"""A session's socket, against a real server: questions and answers, decisions, refusals, leaving."""

import asyncio
from pathlib import Path
from typing import Any

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
from limelight.client.socket import QUEUE_SIZE
from limelight.events import Record
from tests.client.cutting_proxy import answer as page
from tests.client.cutting_proxy import playing, same
from tests.client.socket_helpers import SECONDS, check_texts, messages, over, states, turn, until, whole
from tests.support import agents
from tests.support.server import Served, serving
from tests.support.wait import eventually
from tests.system.processes import agents as process_agents
from tests.system.processes.server_process import free_port

WORDS = "".join(agents.WORDS)


async def asked(socket: Socket[Message]) -> str:
    """Listen until the agent asks: the approval's id."""
    items = await until(socket, lambda item: isinstance(item, Message) and item.message_type == "approval_request")
    return messages(items)[-1].metadata["approval_id"]


async def test_a_conversation(client: Client) -> None:
    async with client.connect("s") as socket:
        assert socket.session_id == "s"
        for number, question in enumerate(["hello", "and again"], start=1):
            run_id = await socket.send(question)
            items = await turn(socket)
            assert states(items) == ["processing", "completed"]
            assert {item.run_id for item in items if isinstance(item, State)} == {run_id}
            said = messages(items)
            assert (said[0].role, said[0].content, said[0].session_id) == ("user", question, "s")
            assert (said[-1].message_type, said[-1].content) == ("final_answer", WORDS)
            assert isinstance(items[-1], State)
            assert items[-1].message_count == number * len(whole(items))
            assert check_texts(items) == 1
        assert (await socket.state()).agent == "talker"
    assert (await client.session("s")).turns == 2


async def test_messages_over_http_are_those_of_the_socket(client: Client) -> None:
    async with client.connect("s", agent="worker") as socket:
        await socket.send("go")
        said = whole(await turn(socket))
        assert await socket.last_messages() == said
        assert await socket.last_messages(3) == said[-3:]
        assert await socket.last_messages(3, before=said[-3].cursor) == said[-6:-3]
    assert [message async for message in client.messages("s")] == said
    assert [message async for message in client.messages("s", after=said[9].cursor)] == said[10:]
    assert await client.last_messages("s", 2) == said[-2:]
    with pytest.raises(NotFound):
        await client.last_messages("nobody")


async def test_records(client: Client) -> None:
    async with client.connect("s", agent="worker", format="records") as socket:
        run_id = await socket.send("go")
        items = await turn(socket)
        assert states(items) == ["processing", "completed"]
        received = [item for item in items if isinstance(item, Record)]
        assert same(received, [record async for record in client.export(run_id)])
    async with client.connect("s", after=received[4].seq, format="records") as socket:
        assert (await turn(socket))[:-1] == received[5:]


async def test_what_was_missed_comes_before_the_state_behind_it(client: Client) -> None:
    async with client.connect("s", agent="worker") as socket:
        await socket.send("go")
        items = await turn(socket)
    said = messages(items)
    for known in (said[0], said[7], said[-1]):
        async with client.connect("s", after=known.cursor) as socket:
            again = await turn(socket)
            assert whole(again) == whole(said[said.index(known) + 1 :])
            assert again[-1] == items[-1]


async def test_a_live_run_is_shown_from_its_beginning(client: Client) -> None:
    run = await client.start("go", agent="patient", session_id="s")
    async with client.connect("s") as socket:
        first = await anext(socket)
        assert isinstance(first, Message)
        assert first.content == "go"
        await socket.cancel("enough")
        items = await turn(socket)
        assert states(items) == ["idle"]
        assert (messages(items)[-1].content, messages(items)[-1].metadata["reason"]) == ("Stopped", "enough")
        with pytest.raises(ClientError) as raised:
            await socket.cancel()
        assert (raised.value.status, raised.value.code) == (409, "not_processing")
    assert (await client.run(run.run_id)).state == "cancelled"


async def test_a_session_is_made_by_its_name_or_before(client: Client) -> None:
    made = await client.open_session("echo", max_steps=7)
    assert (made.agent, made.max_steps, made.state, made.live) == ("echo", 7, "idle", False)
    assert await client.state(made.session_id) == (await client.state(made.session_id))
    async with client.connect(made.session_id, agent="echo") as socket:
        await socket.send("hi")
        assert messages(await turn(socket))[-1].content.startswith("user:hi")
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
async def test_refused(client: Client, arguments: dict[str, str], status: int, code: str) -> None:
    async with client.connect("s", agent="talker"):
        pass
    with pytest.raises(ClientError) as raised:
        async with client.connect("s", **arguments):  # pyright: ignore[reportArgumentType, reportCallIssue]
            raise AssertionError
    assert (raised.value.status, raised.value.code) == (status, code)


async def test_a_busy_session(client: Client) -> None:
    async with client.connect("s", agent="patient") as socket:
        run_id = await socket.send("go")
        with pytest.raises(Busy) as raised:
            await socket.send("and this")
        assert (raised.value.run_id, raised.value.status) == (run_id, 409)
        with pytest.raises(ClientError, match="required"):
            await socket.send(" ")
        second = await socket.send("instead", if_busy="cancel")
        await until(socket, lambda item: isinstance(item, State) and item.live and item.run_id == second)
        assert (await client.run(run_id)).state == "cancelled"


async def test_a_question_waits_while_others_are_answered(client: Client) -> None:
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


async def test_a_question_that_waits_is_withdrawn_by_its_name(client: Client) -> None:
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
        await until(socket, lambda item: isinstance(item, State) and not item.live)
        assert (await client.run(run_id)).state == "cancelled"


async def test_the_one_that_is_stopped_in_the_queue_is_told(served: Served, client: Client) -> None:
    def waiting() -> list[Any]:
        return [place for queue in served.parts.sessions._queues.values() for place in queue]  # pyright: ignore[reportPrivateUsage]

    async with client.connect("s", agent="patient") as socket:
        await socket.send("one")
        two = asyncio.create_task(socket.send("two", if_busy="wait", request_id="two"))
        await eventually(lambda: len(waiting()) == 1)
        three = asyncio.create_task(socket.send("three", if_busy="wait", request_id="three"))
        await eventually(lambda: len(waiting()) == 2)
        waiting()[1].stop("not now")
        with pytest.raises(Busy, match="stopped while it waited"):
            await asyncio.wait_for(three, SECONDS)
        assert not two.done()
        await socket.cancel()
        await asyncio.wait_for(two, SECONDS)


@pytest.mark.parametrize("decision", ["approve", "edit", "reject"])
async def test_decisions(client: Client, decision: str) -> None:
    async with client.connect("s", agent="asker") as socket:
        await socket.send("go")
        approval_id = await asked(socket)
        match decision:
            case "approve":
                assert await socket.approve(approval_id) == "approve"
            case "edit":
                assert await socket.edit(approval_id, {"path": "/tmp/y"}) == "edit"
            case _:
                assert await socket.reject(approval_id, "too risky") == "reject"
        items = await turn(socket)
        assert messages(items)[-1].content == f"decision: {decision} by local"


async def test_decisions_that_do_not_count(client: Client) -> None:
    async with client.connect("s", agent="asker") as socket:
        await socket.send("go")
        approval_id = await asked(socket)
        with pytest.raises(ClientError) as raised:
            await socket.decide(approval_id, "edit")
        assert (raised.value.status, raised.value.code) == (422, "invalid")
        results = await asyncio.gather(socket.approve(approval_id), socket.reject(approval_id), return_exceptions=True)
        assert results[0] == "approve"
        assert isinstance(results[1], AlreadyDecided | ClientError)
        assert not isinstance(results[1], NotOffered)


async def test_commands_are_answered_while_nobody_listens(tmp_path: Path) -> None:
    """More has come than is kept here, and it still comes afterwards: each once, in order."""
    async with (
        serving(process_agents.burst, agents.patient, data=tmp_path / "data") as served,
        Client(served.url) as client,
    ):
        async with client.connect("s", agent="burst", format="records") as socket:
            run_id = await socket.send("go")
            await eventually(lambda: not served.parts.sessions.live(run_id))
            assert await socket.ping() < SECONDS
            with pytest.raises(ClientError, match="not processing"):
                await socket.cancel()
            second = await socket.send("more", if_busy="wait")
            items = await turn(socket, second)
        found = [item for item in items if isinstance(item, Record)]
        whole_session = [record for run in (run_id, second) for record in [r async for r in client.export(run)]]
        assert len(found) > 4000
        assert same(found, whole_session)


async def test_a_waiting_question_does_not_starve_a_slow_listener(tmp_path: Path) -> None:
    async with serving(process_agents.burst, data=tmp_path / "data") as served, Client(served.url) as client:
        async with client.connect("s", format="records") as socket:
            first = await socket.send("go")
            waiting = asyncio.create_task(socket.send("next", if_busy="wait"))
            items = await until(socket, lambda item: over(item) and getattr(item, "run_id", "") == first)
            second = await asyncio.wait_for(waiting, SECONDS)
            items += await turn(socket, second)
        assert [i.seq for i in items if isinstance(i, Record)] == list(range(1, len(items) - len(states(items)) + 1))


async def test_nothing_is_read_ahead_without_end(tmp_path: Path) -> None:
    async with serving(process_agents.burst, data=tmp_path / "data") as served, Client(served.url) as client:
        run = await client.start("go", session_id="s")
        await run.wait()
        async with client.connect("s", after=0) as socket:
            await anext(socket)
            queue = socket._queue  # pyright: ignore[reportPrivateUsage]
            await eventually(lambda: queue.qsize() >= QUEUE_SIZE)
            assert queue.qsize() <= QUEUE_SIZE + 1
            check_texts(await turn(socket))


async def test_questions_of_megabytes(tmp_path: Path) -> None:
    async with (
        serving(agents.talker, data=tmp_path / "data", limits__message_bytes=4_000_000) as served,
        Client(served.url) as client,
        client.connect() as socket,
    ):
        await socket.send("x" * 3_000_000)
        assert states(await turn(socket)) == ["processing", "completed"]
        for size in (5_000_000, 17_000_000):  # over the limit for questions, over that for frames
            with pytest.raises(ClientError) as raised:
                await socket.send("x" * size)
            assert (raised.value.status, raised.value.code) == (413, "body_too_large")
        assert await socket.ping() < SECONDS


async def test_a_key_is_needed(tmp_path: Path) -> None:
    async with serving(agents.echo, data=tmp_path / "data", auth__api_key="secret") as served:
        for key in ("", "wrong"):
            with pytest.raises(Unauthorized) as raised:
                async with Client(served.url, key=key) as client, client.connect("s"):
                    raise AssertionError
            assert (raised.value.status, raised.value.code) == (401, "unauthorized")
        ann = Client(served.url, key="secret", user_id="ann", user_name="Ann")
        async with ann, ann.connect("s") as socket:
            await socket.send("hi")
            assert messages(await turn(socket))[-1].content == "user:hi for ann/Ann in s"


async def test_a_session_that_is_deleted(client: Client) -> None:
    async with client.connect("s", agent="patient") as socket:
        await socket.send("go")
        await client.delete("s")
        with pytest.raises(NotFound, match="deleted") as raised:
            async for _ in socket:  # the end of the run may still be told
                pass
        assert raised.value.code == "session_not_found"
        with pytest.raises(NotFound, match="deleted"):
            await socket.send("hello?")
        with pytest.raises(NotFound, match="deleted"):
            await anext(socket)
    assert [session async for session in client.sessions()] == []


async def test_a_proxy_of_the_environment_is_not_for_this_machine(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "ws_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    async with Client(served.url) as client, client.connect("s") as socket:
        assert await socket.ping() < SECONDS
    async with Client("http://limelight.example") as client:
        with pytest.raises(ConnectionLost, match="does not answer"):
            await client.connect("s").__aenter__()


async def test_a_server_without_tls(served: Served) -> None:
    async with Client(served.url.replace("http", "https")) as client:
        with pytest.raises(ConnectionLost, match="does not answer"):
            await client.connect("s").__aenter__()


async def test_nobody_is_there() -> None:
    async with Client(f"http://127.0.0.1:{free_port()}") as client:
        with pytest.raises(ConnectionLost, match="does not answer"):
            await client.connect("s").__aenter__()


async def test_what_is_no_limelight() -> None:
    async with playing(page("<html>", content_type="text/html")) as stage, Client(stage.url) as client:
        with pytest.raises(ClientError, match="does not seem to be a Limelight server"):
            await client.connect("s").__aenter__()
    for url in ("ftp://x", "nowhere", "http://[::1", "http://host:port"):
        async with Client(url) as client:
            with pytest.raises(ClientError, match="is not a valid address"):
                await client.connect("s").__aenter__()


async def test_leaving(served: Served, client: Client) -> None:
    before = asyncio.all_tasks()
    async with client.connect("s", agent="patient") as socket:
        run_id = await socket.send("go")
        await eventually(lambda: served.parts.pulse.streams == 1)
    await eventually(lambda: served.parts.pulse.streams == 0)
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


async def test_closing_the_client_wakes_those_who_wait(served: Served) -> None:
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


async def test_a_caller_that_leaves_takes_nobody_along(client: Client) -> None:
    async with client.connect("s", agent="patient") as socket:
        await socket.send("one")
        two = asyncio.create_task(socket.send("two", if_busy="wait"))
        await socket.ping()
        two.cancel()
        listening = asyncio.create_task(turn(socket))
        await socket.ping()
        listening.cancel()
        await asyncio.wait({two, listening})
        await socket.cancel()
        assert "idle" in states(await turn(socket))


async def test_the_end_of_a_run_that_ends_without_a_message(tmp_path: Path) -> None:
    may_end = asyncio.Event()

    async def lingering(messages: object, ctx: object):
        """Answers, and ends later."""
        yield agents.FinalAnswer(content="done")
        await may_end.wait()

    async with serving(lingering, data=tmp_path / "data") as served, Client(served.url) as client:
        async with client.connect("s") as socket:
            await socket.send("go")
            items = await until(socket, lambda item: isinstance(item, Message) and item.message_type == "final_answer")
        async with client.connect("s", after=messages(items)[-1].cursor) as socket:
            await socket.ping()
            may_end.set()
            assert states(await turn(socket)) == ["completed"]
