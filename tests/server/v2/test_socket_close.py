"""How a socket is closed: deleted sessions, store faults, shutdown."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from limelight.errors import StoreCorrupt, StoreUnavailable, TooManyRequests
from limelight.messages import Message
from limelight.models import Begun, Session, SessionRef
from limelight.runs.limits import MAX_QUEUED
from limelight.runs.queue import QueuedRun
from limelight.sources.base import Context
from tests.server.v2.socket_client import credentials, socket, states, whole
from tests.support import agents
from tests.support.server import Served, serving
from tests.support.wait import eventually


@pytest.mark.requirement("socket-close-codes")
async def test_deleting_a_session_closes_its_sockets(served: Served) -> None:
    async with socket(served, agent_type="patient") as ws:
        await ws.send("query", query="go")
        await ws.until_state("processing")
        assert (await served.http.delete("/api/v2/sessions/s")).json() == {"message": "Session deleted"}
        assert (await ws.error())[1] == "session_not_found"
        assert (await ws.closed())[0] == 4404
        await eventually(lambda: served.runtime.hub.viewers == 0)


async def test_query_does_not_recreate_a_deleted_session(served: Served) -> None:
    begin = served.runtime.sessions.begin

    async def begin_late(place: QueuedRun) -> Begun:
        await served.http.delete("/api/v2/sessions/s")
        return await begin(place)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(served.runtime.sessions, "begin", begin_late)
        async with socket(served) as ws:
            await ws.receive()
            await ws.send("query", query="go")
            assert (await ws.error())[1] == "session_not_found"
    assert (await served.http.get("/api/v2/sessions/s")).status_code == 404


async def test_deleting_a_session_starts_no_queued_query(tmp_path: Path) -> None:
    begun: list[str] = []

    async def patient(messages: list[Message], ctx: Context) -> AsyncIterator[str]:
        begun.append(messages[-1].text)
        yield "Working"
        await asyncio.sleep(3600)

    async with serving(patient, data=tmp_path) as served, socket(served) as ws:
        await ws.send("query", query="first")
        await ws.until_state("processing")
        for number in range(3):
            await ws.send("query", query=str(number), if_busy="wait", request_id=f"r{number}")
        await ws.send("ping")
        await ws.until_type("pong")
        assert (await served.http.delete("/api/v2/sessions/s")).status_code == 200
        with pytest.raises(ConnectionClosed):
            while (frame := await ws.receive()).get("type") != "accepted":
                pass
            raise AssertionError(frame)
    assert begun == ["first"]


async def test_resume_of_a_deleted_session_closes_the_socket(served: Served) -> None:
    async with socket(served) as ws:
        await ws.ask("go")
        deleting = asyncio.create_task(served.http.delete("/api/v2/sessions/s"))
        await ws.send("resume", after=0)
        await deleting
        assert (await ws.closed())[0] == 4404


async def test_queued_query_can_be_cancelled(served: Served) -> None:
    async with socket(served, agent_type="patient") as ws:
        await ws.send("query", query="first", request_id="r1")
        await ws.until_state("processing")
        await ws.send("query", query="second", if_busy="wait", request_id="r2")
        await ws.send("cancel", request_id="r2")
        refused = (await ws.until_type("error"))[-1]
        assert (refused["message"], refused["request_id"]) == ("Query was stopped while it waited", "r2")
        await ws.send("cancel", request_id="r1")
        await ws.until_state("idle")
        assert (await served.http.get("/api/v2/sessions/s")).json()["state"] == "idle"


async def test_queries_beyond_the_queue_limit_are_refused(served: Served) -> None:
    async with socket(served, agent_type="patient") as ws:
        await ws.send("query", query="first")
        await ws.until_state("processing")
        for _ in range(MAX_QUEUED):
            await ws.send("query", query="again", if_busy="wait", request_id="same")
        await ws.send("query", query="again", if_busy="wait", request_id="one more")
        refused = (await ws.until_type("error"))[-1]
        assert (refused["error_code"], refused["request_id"]) == ("queue_full", "one more")


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        ({"type": "query", "query": "x" * 1_048_576, "request_id": "r"}, "body_too_large"),
        ({"type": "query", "query": " ", "request_id": "r"}, "invalid"),
        ({"type": "query", "query": "x", "if_busy": "no", "request_id": "r"}, "invalid"),
    ],
    ids=["too large", "empty", "wrong"],
)
async def test_error_of_a_refused_query_has_its_request_id(served: Served, sent: dict[str, str], code: str) -> None:
    async with socket(served) as ws:
        await ws.connection.send(json.dumps(sent))
        refused = (await ws.until_type("error"))[-1]
        assert (refused["error_code"], refused["request_id"]) == (code, "r")


async def test_error_of_another_command_has_no_request_id(served: Served) -> None:
    async with socket(served) as ws:
        await ws.send("cancel", request_id="r")
        assert "request_id" not in (await ws.until_type("error"))[-1]


async def test_late_decision_is_refused_as_already_decided(served: Served) -> None:
    """Also after the run has ended and the next one has begun."""
    async with socket(served, agent_type="asker") as ws:
        await ws.send("query", query="delete it")
        asked = await ws.until(lambda f: f.get("metadata", {}).get("message_type") == "approval_request")
        approval_id = asked[-1]["metadata"]["approval_id"]
        await ws.send("approve", approval_id=approval_id)
        await ws.until_state("completed")
        await ws.send("approve", approval_id=approval_id)
        assert (await ws.error())[1] == "already_decided"
        await ws.send("query", query="delete it")
        await ws.until(lambda f: f.get("metadata", {}).get("message_type") == "approval_request")
        await ws.send("approve", approval_id=approval_id)
        assert (await ws.error())[1] == "already_decided"
        await ws.send("approve", approval_id="apr_none")
        assert (await ws.error())[1] == "approval_not_found"


async def test_unexpected_error_is_sent_without_details_and_the_socket_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(agents.talker, data=tmp_path) as served:

        def break_down(*_: object, **__: object) -> None:
            raise RuntimeError("the wheel came off")

        for method in ("begin", "session"):
            async with socket(served) as ws:
                await ws.receive()
                with monkeypatch.context() as patch:
                    patch.setattr(served.runtime.store, method, break_down)
                    await ws.send("query", query="go", request_id="r")
                    text, code = await ws.error()
                assert (text.startswith("Processing error: unexpected error"), "wheel" in text, code) == (
                    True,
                    False,
                    "internal",
                )
                await ws.send("ping")
                await ws.until_type("pong")


async def test_unreadable_log_closes_the_socket_with_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(agents.talker, data=tmp_path) as served:
        async with socket(served) as ws:
            await ws.ask("go")
        await eventually(lambda: served.runtime.hub.viewers == 0)

        async def unreadable(*_: object, **__: object) -> None:
            raise StoreUnavailable("the database cannot be read")

        monkeypatch.setattr(served.runtime.store, "records", unreadable)
        async with socket(served, after="0") as ws:
            assert await ws.error() == ("Processing error: the database cannot be read", "store_unavailable")
            assert (await ws.closed())[0] == 1013


@pytest.mark.parametrize(
    ("error", "code", "closing"),
    [
        (ZeroDivisionError("the wheel came off"), "internal", 1011),
        (StoreCorrupt("damaged"), "store_corrupt", 1011),
        (StoreUnavailable("not now"), "store_unavailable", 1013),
        (TooManyRequests("too often", retry_after=3), "too_many_requests", 1013),
    ],
)
@pytest.mark.parametrize("times", [0, 2], ids=["opening", "greeting"])
async def test_error_before_the_first_frame_closes_the_socket_with_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, code: str, closing: int, times: int
) -> None:
    async with serving(agents.talker, data=tmp_path) as served:
        async with socket(served) as ws:
            await ws.ask("go")
        await eventually(lambda: served.runtime.hub.viewers == 0)
        read, reads = served.runtime.store.session, list[SessionRef]()

        async def fails(ref: SessionRef) -> Session | None:
            reads.append(ref)
            if len(reads) > times:
                raise error
            return await read(ref)

        monkeypatch.setattr(served.runtime.store, "session", fails)
        async with socket(served) as ws:
            error_frame = await ws.receive()
            assert (error_frame["type"], error_frame["error_code"]) == ("error", code)
            assert ("retry_after" in error_frame) is (closing == 1013)
            assert await ws.closed() == (closing, code)
        await eventually(lambda: served.runtime.hub.viewers == 0)


async def test_run_that_ends_during_a_connect_is_sent_from_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(agents.patient, data=tmp_path) as served, socket(served) as first:
        await first.send("query", query="go")
        await first.until_state("processing")
        read = served.runtime.store.run

        async def read_late(run_id: str) -> object:
            monkeypatch.setattr(served.runtime.store, "run", read)
            await first.send("cancel")
            await first.until_state("idle")
            return await read(run_id)

        monkeypatch.setattr(served.runtime.store, "run", read_late)
        async with socket(served) as late:
            frames = await late.until_state("idle")
            assert states(frames) == ["processing", "idle"]
            assert whole(frames)[0]["content"] == "go"


async def test_handshake_at_another_path_is_not_found(served: Served) -> None:
    for path in ("/api/v2/ws/", "/api/v2/ws/a%2Fb", "/elsewhere"):
        url = f"{served.url.replace('http', 'ws', 1)}{path}"
        with pytest.raises(InvalidStatus) as refusal:
            async with connect(url, additional_headers=credentials(served), proxy=None):
                pass
        assert refusal.value.response.status_code == 404
        assert b'"code":"not_found"' in (refusal.value.response.body or b"")


async def test_shutdown_closes_sockets_with_1012(tmp_path: Path) -> None:
    async with serving(agents.patient, data=tmp_path) as served, socket(served) as ws:
        await ws.send("query", query="go")
        await ws.until_state("processing")
        draining = asyncio.create_task(served.runtime.drain())
        frames = await ws.until_state("error")
        assert whole(frames)[-1]["metadata"]["code"] == "interrupted"
        assert (await ws.closed())[0] == 1012
        await draining


async def test_closed_sockets_leave_no_viewers_and_tasks(tmp_path: Path) -> None:
    async with serving(agents.talker, data=tmp_path) as served:
        tasks = len(asyncio.all_tasks())
        for _ in range(20):
            async with socket(served) as ws:
                await ws.receive()
        await eventually(lambda: served.runtime.hub.viewers == 0 and served.runtime.open_streams.count == 0)
        await eventually(lambda: len(asyncio.all_tasks()) <= tasks)
