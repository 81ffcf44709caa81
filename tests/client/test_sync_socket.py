"""A session's socket without asyncio, with a real server."""

import gc
import threading
from collections.abc import Iterator

import pytest

from limelight.client import Busy, ConnectionLost, Message, State, SyncClient, SyncSocket
from limelight.events import Record
from tests.client.cutting_proxy import assert_complete
from tests.client.test_sync import loop_threads
from tests.support import agents

WORDS = "".join(agents.WORDS)


@pytest.fixture
def client(url: str) -> Iterator[SyncClient]:
    with SyncClient(url) as client:
        yield client


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


def test_sync_socket_decides_approvals(client: SyncClient) -> None:
    with client.connect("s", agent="asker") as socket:
        for decision in ("approve", "edit", "reject", "decide"):
            socket.send("go")
            request = next(i for i in socket if isinstance(i, Message) and i.message_type == "approval_request")
            approval_id = request.metadata["approval_id"]
            match decision:
                case "approve":
                    assert socket.approve(approval_id) == decision
                case "edit":
                    assert socket.edit(approval_id, {"path": "y"}) == decision
                case "reject":
                    assert socket.reject(approval_id, "no") == decision
                case _:
                    assert socket.decide(approval_id, "approve") == "approve"
            expected = "approve" if decision == "decide" else decision
            assert read_run(socket)[-1].content == f"decision: {expected} by local"


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
