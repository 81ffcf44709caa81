"""The client and the socket without asyncio: same methods, several threads, a running loop, closing."""

import asyncio
import gc
import inspect
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from limelight.client import (
    Busy,
    Client,
    ConnectionLost,
    Message,
    NotFound,
    Run,
    Socket,
    State,
    SyncClient,
    SyncRun,
    SyncSocket,
)
from limelight.events import ArtifactMade, Record, kind_of
from tests.client.cutting_proxy import assert_complete
from tests.support import agents
from tests.support.server import Served

WORDS = "".join(agents.WORDS)


@pytest.fixture
def client(url: str) -> Iterator[SyncClient]:
    with SyncClient(url) as client:
        yield client


def loop_threads() -> int:
    return sum(thread.name == "limelight-client" for thread in threading.enumerate())


def methods(of: type) -> dict[str, list[inspect.Parameter]]:
    found = inspect.getmembers(of, inspect.isfunction)
    return {name: list(inspect.signature(f).parameters.values()) for name, f in found if not name.startswith("_")}


@pytest.mark.requirement("client-sync")
def test_sync_client_has_the_signatures_and_docstrings_of_the_client() -> None:
    assert methods(SyncClient) == {name.replace("aclose", "close"): args for name, args in methods(Client).items()}
    assert inspect.signature(SyncClient) == inspect.signature(Client)
    assert SyncClient.follow.__doc__ == Client.follow.__doc__


@pytest.mark.parametrize(("blocking", "wrapped"), [(SyncSocket, Socket), (SyncRun, Run)])
def test_sync_socket_and_run_have_the_signatures_of_their_counterparts(blocking: type, wrapped: type) -> None:
    assert methods(blocking) == {name.replace("aclose", "close"): args for name, args in methods(wrapped).items()}


def test_sync_run_yields_records_and_text(client: SyncClient) -> None:
    assert "talker" in [agent.name for agent in client.agents()]
    run = client.start("hello", session_id="s")
    found = list(run)
    assert (kind_of(found[0].event), kind_of(found[-1].event)) == ("run_started", "run_finished")
    assert (run.text(), run.session_id) == (WORDS, "s")
    assert client.run(run.run_id).state == "finished"
    assert_complete(found, list(client.export(run.run_id)))
    assert_complete(found, list(client.follow(run.run_id)))  # pyright: ignore[reportArgumentType]
    assert client.answer(run.run_id) == WORDS
    assert client.ask("again", session_id="s").content == WORDS


def test_sync_client_methods_return_results(client: SyncClient) -> None:
    run = client.start("go", agent="worker", session_id="w")
    (made,) = [record.event for record in run if isinstance(record.event, ArtifactMade)]
    assert client.artifact(made.artifact_id) == b"a report"
    assert client.result(run.run_id, "t1").result == {"hits": 3}
    assert client.rename("w", "Work").title == "Work"
    assert client.session("w").title == "Work"
    assert [session.session_id for session in client.sessions(q="wor")] == ["w"]
    client.delete("w")
    with pytest.raises(NotFound):
        client.session("w")
    assert client.cancel(client.start("go", agent="patient").run_id) == "cancelled"


@pytest.mark.requirement("client-leaving")
def test_leaving_a_loop_does_not_stop_the_run(client: SyncClient) -> None:
    run = client.start("go", agent="patient", session_id="s")
    for record in run:
        if kind_of(record.event) == "tool_started":
            break
    for stream in (client.follow(run.run_id), client.watch("s")):
        next(stream)
        stream.close()
    assert run.cancel("enough") == "cancelled"
    assert run.text() == "Working"
    run.close()


@pytest.mark.requirement("client-sync")
def test_sync_client_works_in_several_threads(client: SyncClient) -> None:
    def turn(n: int) -> str:
        run = client.start("hello", session_id=f"s{n}")
        numbers = [record.seq for record in run]
        assert numbers == sorted(set(numbers))
        return run.text()

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(turn, range(24))) == [WORDS] * 24
    assert loop_threads() == 1


def test_closing_the_sync_client_wakes_waiting_threads(url: str) -> None:
    client = SyncClient(url)
    run = client.start("go", agent="patient", session_id="s")
    listening, errors = threading.Barrier(3), list[Exception]()

    def listen(stream: Iterator[object]) -> None:
        try:
            next(stream)
            listening.wait(10)
            for _ in stream:
                pass
        except ConnectionLost as error:
            errors.append(error)

    threads = [threading.Thread(target=listen, args=(s,)) for s in (client.follow(run.run_id), client.watch("s"))]
    for thread in threads:
        thread.start()
    listening.wait(10)
    client.close()
    for thread in threads:
        thread.join(10)
    assert [str(error) for error in errors] == ["the client is closed"] * 2
    client.close()
    with pytest.raises(ConnectionLost, match="closed"):
        client.agents()
    with pytest.raises(ConnectionLost, match="closed"):
        next(run)
    assert loop_threads() == 0
    with SyncClient(url) as other:
        assert other.cancel(run.run_id) == "cancelled"


def test_closing_the_sync_client_ends_open_streams(url: str) -> None:
    with SyncClient(url) as client:
        run = client.start("go", agent="patient")
        for _ in client.follow(run.run_id):
            break
        stream = client.follow(run.run_id)
        next(stream)
    stream.close()
    with pytest.raises(StopIteration):
        next(stream)
    assert loop_threads() == 0


def test_unreferenced_sync_client_closes_after_its_streams(url: str) -> None:
    run = SyncClient(url).start("hello")
    gc.collect()
    assert run.text() == WORDS
    del run
    records = SyncClient(url).export(SyncClient(url).ask("hello").run_id)
    gc.collect()
    assert len(list(records)) > 3
    del records
    gc.collect()
    assert loop_threads() == 0


async def test_sync_client_works_inside_a_running_loop(served: Served) -> None:
    """As in Jupyter: a blocking call is made inside a coroutine of another loop."""

    def cell() -> str:
        asyncio.set_event_loop(asyncio.new_event_loop())
        loop = asyncio.get_event_loop()

        async def running() -> str:
            with SyncClient(served.url) as client:
                return client.start("hello").text()

        try:
            return loop.run_until_complete(running())
        finally:
            loop.close()

    assert await asyncio.to_thread(cell) == WORDS


def test_interrupt_cancels_the_coroutine(client: SyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    run = client.start("go", agent="patient", session_id="s")
    stream = client.follow(run.run_id)
    next(stream)

    def interrupt(_: Any) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(Future, "result", interrupt)
    with pytest.raises(KeyboardInterrupt):
        next(stream)
    assert client.cancel(run.run_id) == "cancelled"


def read_run(socket: SyncSocket[Message]) -> list[Message]:
    """Read complete messages up to the end of the run."""
    found: list[Message] = []
    for item in socket:
        if isinstance(item, Message) and item.whole:
            found.append(item)
        if isinstance(item, State) and not item.live:
            break
    return found


def test_sync_socket_sends_queries_and_yields_messages(client: SyncClient) -> None:
    with client.connect("s") as socket:
        for question in ("hello", "and again"):
            run_id = socket.send(question)
            assert (found := read_run(socket))[-1].content == WORDS
            assert found[0].content == question
            assert client.run(run_id).state == "finished"
        assert socket.session_id == "s"
        assert socket.state() == client.state("s")
        assert socket.last_messages(2) == found[-2:] == client.last_messages("s", 2)
        assert list(client.messages("s"))[-len(found) :] == found
        assert socket.ping() < 10
    with pytest.raises(StopIteration):
        next(socket)


def test_sync_socket_yields_records(client: SyncClient) -> None:
    with client.connect("s", agent="worker", format="records") as socket:
        run_id, received = socket.send("go"), list[Record]()
        for item in socket:
            if isinstance(item, Record):
                received.append(item)
            elif isinstance(item, State) and not item.live:
                break
        assert_complete(received, list(client.export(run_id)))


def test_sync_socket_cancels_a_run_and_raises_busy(client: SyncClient) -> None:
    made = client.open_session("patient")
    with client.connect(made.session_id) as socket:
        run_id = socket.send("go")
        with pytest.raises(Busy) as raised:
            socket.send("me too")
        assert raised.value.run_id == run_id
        socket.cancel("enough")
        assert read_run(socket)[-1].content == "Stopped"


def test_sync_socket_decides_an_approval(client: SyncClient) -> None:
    with client.connect("s", agent="asker") as socket:
        socket.send("go")
        request = next(i for i in socket if isinstance(i, Message) and i.message_type == "approval_request")
        assert socket.edit(request.metadata["approval_id"], {"path": "y"}) == "edit"
        assert read_run(socket)[-1].content == "decision: edit by local"


def test_closing_the_sync_client_wakes_socket_readers(url: str) -> None:
    client = SyncClient(url)
    socket, errors = client.connect("s").__enter__(), list[Exception]()
    socket.send("hello")
    read_run(socket)

    def read() -> None:
        try:
            next(socket)
        except ConnectionLost as error:
            errors.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    socket.ping()
    client.close()
    reader.join(10)
    assert [str(error) for error in errors] == ["the client is closed"]
    for use in (socket.ping, lambda: next(socket), lambda: client.connect("t").__enter__()):
        with pytest.raises(ConnectionLost, match="client is closed"):
            use()
    assert loop_threads() == 0


def test_unreferenced_sync_socket_closes_with_its_client(url: str) -> None:
    socket = SyncClient(url).connect("s").__enter__()
    gc.collect()
    assert socket.ping() < 10
    del socket
    gc.collect()
    assert loop_threads() == 0
