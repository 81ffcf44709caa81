"""Limits of users: what is beyond them is refused with a code, and other users are not affected."""

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed

from limelight.auth.key_file import Keyring
from limelight.messages import Message
from limelight.runs import engine
from limelight.server import rate_limit
from limelight.server.process import uvicorn_protocols
from limelight.server.process.uvicorn_protocols import WebSocketConnection
from limelight.server.rate_limit import SIGNAL_BURST
from limelight.server.token_bucket import TokenBuckets
from limelight.server.v2.socket import MESSAGE_BURST, TOO_MANY_MESSAGES
from limelight.sources.base import Context
from tests.server.keyed_server import Headers, maker, serving_users, start_waiting_run
from tests.server.v2.socket_client import socket
from tests.support import agents
from tests.support.server import Served, asking, serving
from tests.support.wait import DEADLINE, eventually


def code_of(reply: httpx.Response) -> str:
    """The code of a refusal; "" for a success."""
    return "" if reply.is_success else reply.json()["code"]


async def test_requests_beyond_the_rate_are_refused_with_retry_after(tmp_path: Path) -> None:
    async with serving_users(tmp_path, requests_per_minute=5) as users:
        replies = [await users.served.http.get("/agents", headers=users.ann) for _ in range(6)]
        assert [reply.status_code for reply in replies] == [200] * 5 + [429]
        refused = replies[-1]
        assert refused.json()["code"] == "too_many_requests"
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert refused.json()["retry_after"] == int(refused.headers["retry-after"])
        assert (await users.served.http.get("/agents", headers=users.ben)).status_code == 200
        assert (await users.served.http.get("/health", headers=users.ann)).status_code == 200


@pytest.mark.parametrize("command", ["query", "get_state", "get_messages", "resume", "nonsense"])
async def test_socket_commands_count_as_requests(tmp_path: Path, command: str) -> None:
    async with (
        serving_users(tmp_path, requests_per_minute=3) as users,
        socket(users.served, headers=users.ann, agent_type="echo") as ws,
    ):
        for _ in range(3):  # the handshake is the first request
            await ws.send(command, query="hi", if_busy="cancel", after="0")
        frames = await ws.until(lambda frame: frame.get("error_code") == "too_many_requests")
        assert 1 <= frames[-1]["retry_after"] <= 60


async def test_ping_and_cancel_do_not_count_as_requests(tmp_path: Path) -> None:
    async with (
        serving_users(tmp_path, requests_per_minute=3) as users,
        socket(users.served, headers=users.ann, agent_type="patient") as ws,
    ):
        await ws.send("query", query="hi")
        await ws.until_state("processing")
        for _ in range(2):
            await ws.send("get_state")
        await ws.until(lambda frame: frame.get("error_code") == "too_many_requests")
        for _ in range(9):
            await ws.send("ping")
            await ws.until_type("pong")
        await ws.send("cancel")
        await ws.until_state("idle")


async def test_decision_on_an_open_approval_does_not_count_and_a_guess_does(tmp_path: Path) -> None:
    """A decision on an unknown approval makes the server search logs, so it counts as a request."""
    async with serving_users(tmp_path, maker, requests_per_minute=3) as users:
        served, ann = users.served, users.ann
        async with socket(served, headers=ann, agent_type="maker", format="records") as ws:
            await ws.send("query", query="hi")
            requested = await ws.until(lambda frame: frame.get("event", {}).get("kind") == "approval_requested")
            for number in range(2):
                await ws.send("approve", approval_id=f"none{number}")
            assert [(await ws.error())[1] for _ in range(2)] == ["approval_not_found", "too_many_requests"]
            await ws.send("approve", approval_id=requested[-1]["event"]["approval_id"])
            await ws.until_type("decided")


async def spend_requests(served: Served, headers: Headers) -> None:
    """Send requests until one is refused for rate."""
    while (await served.http.get("/agents", headers=headers)).status_code != 429:
        pass


@pytest.mark.requirement("stop-not-limited")
async def test_stop_is_not_refused_when_the_requests_are_spent(tmp_path: Path) -> None:
    async with serving_users(tmp_path, requests_per_minute=5) as users:
        await anext(users.stream(users.ann, "s"))
        run_id = (await users.served.http.get("/sessions/s", headers=users.ann)).json()["run_id"]
        await spend_requests(users.served, users.ann)
        stop = users.served.http.post
        assert (await stop(f"/runs/{run_id}/cancel", headers=users.ben)).status_code == 404
        stopped = await stop(f"/runs/{run_id}/cancel", headers=users.ann)
        assert (stopped.status_code, stopped.json()["state"]) == (200, "cancelled")
        again = [code_of(await stop(f"/runs/{run_id}/cancel", headers=users.ann)) for _ in range(SIGNAL_BURST + 6)]
        assert again[:10] == [""] * 10  # repeated stops
        assert "too_many_requests" in again  # more stops of an ended run count as requests


async def test_stop_of_a_queued_request_is_not_refused_when_the_requests_are_spent(tmp_path: Path) -> None:
    async with serving_users(tmp_path, requests_per_minute=5) as users, AsyncExitStack() as stack:
        await anext(users.stream(users.ann, "s"))
        body = asking("hi", session_id="s", agent="patient", if_busy="wait")
        queued = stack.enter_async_context(
            users.served.http.stream("POST", "/chat/stream", json=body, headers=users.ann)
        )
        run_id = (await queued).headers["x-run-id"]
        await spend_requests(users.served, users.ann)
        stopped = await users.served.http.post(f"/runs/{run_id}/cancel", headers=users.ann)
        assert (stopped.status_code, stopped.json()["state"]) == (200, "cancelled")


@pytest.mark.requirement("stop-not-limited")
async def test_decision_is_not_refused_when_the_requests_are_spent(tmp_path: Path) -> None:
    async with serving_users(tmp_path, maker, requests_per_minute=5) as users:
        served, ann = users.served, users.ann
        names = await start_waiting_run(served, ann)
        await spend_requests(served, ann)
        path = f"/runs/{names['run_id']}/approvals/{names['approval_id']}"
        decided = await served.http.post(path, json={"decision": "approve"}, headers=ann)
        assert (decided.status_code, decided.json()) == (200, {"state": "approve"})


async def test_repeated_stops_of_a_live_run_are_answered_and_send_one_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "STOP_GRACE", DEADLINE)  # the run lives until all its Stops have arrived

    is_deaf, answered = asyncio.Event(), asyncio.Event()

    async def deaf(messages: list[Message], ctx: Context) -> AsyncIterator[str]:
        yield "Deaf"
        try:
            is_deaf.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await answered.wait()

    async with serving_users(tmp_path, deaf, requests_per_minute=5) as users:
        served, ann = users.served, users.ann
        body = asking("hi", session_id="s", agent="deaf")
        await anext(served.stream("POST", "/chat/stream", json=body, headers=ann))
        await asyncio.wait_for(is_deaf.wait(), DEADLINE)
        (live,) = served.runtime.control.live_runs
        signals: list[object] = []
        monkeypatch.setattr(served.runtime.store, "signal", signalled(served, signals))
        path = f"/runs/{live.execution.run.run_id}/cancel"
        first = asyncio.create_task(served.http.post(path, headers=ann))
        await eventually(lambda: live.execution.stopping)
        repeats = await asyncio.gather(*(served.http.post(path, headers=ann) for _ in range(2 * SIGNAL_BURST)))
        answered.set()
        assert {reply.status_code for reply in (*repeats, await first)} == {200}
        assert len(signals) == 1


def signalled(served: Served, signals: list[object]) -> Callable[..., Awaitable[Any]]:
    """The store's `signal`, which also records the signals that it stores."""
    send = served.runtime.store.signal

    async def signal(one: Any, *, now: int) -> Any:
        outcome = await send(one, now=now)
        if outcome == "sent":
            signals.append(one)
        return outcome

    return signal


@pytest.mark.requirement("socket-rate")
@pytest.mark.parametrize("command", ["ping", "get_state", "nonsense"])
async def test_socket_that_sends_too_many_messages_is_closed_with_the_reason(tmp_path: Path, command: str) -> None:
    async with (
        serving_users(tmp_path, requests_per_minute=100_000) as users,
        socket(users.served, headers=users.ann, agent_type="echo") as flood,
        socket(users.served, headers=users.ann, agent_type="echo") as other,
    ):
        for _ in range(2 * MESSAGE_BURST):
            with suppress(ConnectionClosed):
                await flood.send(command)
        frames: list[Any] = []
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                frames.append(await flood.receive())
        assert (frames[-1]["error_code"], frames[-1]["message"]) == ("too_many_requests", TOO_MANY_MESSAGES)
        assert closed.value.rcvd is not None
        assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1013, "too_many_requests")
        await other.send("ping")
        await other.until_type("pong")


@pytest.mark.requirement("socket-rate")
async def test_messages_on_all_sockets_of_a_user_have_one_limit_and_stop_is_not_refused(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as users:
        users.served.runtime.message_buckets = TokenBuckets(3, 0, asyncio.get_running_loop().time)
        async with (
            socket(users.served, "one", headers=users.ann, agent_type="patient") as one,
            socket(users.served, "two", headers=users.ann, agent_type="echo") as two,
            socket(users.served, headers=users.ben, agent_type="echo") as of_ben,
        ):
            await one.send("query", query="go")
            await one.until_state("processing")
            for _ in range(2):
                await one.send("ping")
                await one.until_type("pong")
            await two.send("ping")
            assert (await two.error())[1] == "too_many_requests"
            assert await two.closed() == (1013, "too_many_requests")
            await one.send("cancel")
            await one.until_state("idle", "completed")
            await of_ben.send("ping")
            await of_ben.until_type("pong")


@pytest.mark.requirement("socket-rate")
async def test_stop_on_a_socket_is_not_refused_because_of_its_other_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("limelight.server.v2.socket.MESSAGE_BURST", 3)
    monkeypatch.setattr("limelight.server.v2.socket.MESSAGES_PER_SECOND", 0.001)
    async with (
        serving_users(tmp_path) as users,
        socket(users.served, headers=users.ann, agent_type="patient") as ws,
    ):
        await ws.send("query", query="go")
        await ws.until_state("processing")
        for _ in range(2):
            await ws.send("ping")
        await ws.send("cancel")
        await ws.until_state("idle", "completed")
        await ws.send("ping")
        assert await ws.closed() == (1013, "too_many_requests")


async def test_too_many_stops_on_a_socket_are_delayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("limelight.server.v2.socket.REFUSAL_DELAY_SECONDS", 0.05)
    monkeypatch.setattr("limelight.server.v2.socket.MESSAGE_BURST", 3)
    monkeypatch.setattr("limelight.server.v2.socket.MESSAGES_PER_SECOND", 0.001)
    async with serving_users(tmp_path) as users, socket(users.served, headers=users.ann, agent_type="echo") as ws:
        began = asyncio.get_running_loop().time()
        for _ in range(7):
            await ws.send("cancel")
        await ws.send("ping")
        await ws.until_type("pong")
        assert asyncio.get_running_loop().time() - began >= 4 * 0.05


async def test_stop_does_not_wait_behind_refused_messages_of_its_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_limit, "REFUSAL_DELAY_SECONDS", 3600)
    async with (
        serving_users(tmp_path, requests_per_minute=2) as users,
        socket(users.served, headers=users.ann, agent_type="patient") as ws,
    ):
        await ws.send("query", query="go")
        await ws.until_state("processing")
        for _ in range(20):
            await ws.send("get_state")
        await ws.send("cancel")
        await ws.until_state("idle", "completed")


@pytest.mark.requirement("socket-rate")
@pytest.mark.parametrize("kind", ["ping", "pong"])
async def test_socket_that_sends_too_many_control_frames_is_closed(tmp_path: Path, kind: str) -> None:
    async with serving_users(tmp_path) as users, socket(users.served, headers=users.ann, agent_type="echo") as flood:
        with pytest.raises(ConnectionClosed) as closed:
            async with asyncio.timeout(20):
                while True:
                    await getattr(flood.connection, kind)()
                    await asyncio.sleep(0)
        assert closed.value.rcvd is not None
        assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1008, "too many ping or pong frames")


async def test_ping_of_a_client_that_reads_late_is_answered_when_it_reads(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as users, socket(users.served, headers=users.ann, agent_type="echo") as late:
        (server_side,) = [one for one in gc.get_objects() if type(one) is WebSocketConnection and not one.disconnected]
        server_side.pause_writing()  # as when the buffers are full
        first, latest = await late.connection.ping(b"first"), await late.connection.ping(b"latest")
        await eventually(lambda: server_side._late_pong.endswith(b"latest"))  # pyright: ignore[reportPrivateUsage]
        server_side.resume_writing()
        async with asyncio.timeout(20):
            await asyncio.gather(first, latest)  # the answer to a later ping counts for those before it


async def test_socket_that_sends_endless_fragments_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uvicorn_protocols, "MAX_FRAGMENTS", 50)

    async def fragments() -> AsyncIterator[str]:
        while True:
            yield ""
            await asyncio.sleep(0)  # the client has to read the close frame

    async with serving_users(tmp_path) as users, socket(users.served, headers=users.ann, agent_type="echo") as flood:
        with pytest.raises(ConnectionClosed) as closed:
            async with asyncio.timeout(20):
                await flood.connection.send(fragments())
        assert closed.value.rcvd is not None
        assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1008, "too many fragments")


async def test_runs_beyond_the_user_limit_are_refused(tmp_path: Path) -> None:
    async with serving_users(tmp_path, runs_per_user=2) as users:
        for number in range(2):
            await anext(users.stream(users.ann, f"s{number}"))
        refused = await users.ask(users.ann, "s3", "patient")
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_runs")
        assert int(refused.headers["retry-after"]) > 0
        assert (await users.served.http.get("/sessions/s3", headers=users.ann)).status_code == 404
        assert (await users.ask(users.ben, "s")).status_code == 200
        run_id = (await users.served.http.get("/sessions/s0", headers=users.ann)).json()["run_id"]
        await users.served.http.post(f"/runs/{run_id}/cancel", headers=users.ann)
        assert (await users.ask(users.ann, "s3")).status_code == 200


async def test_sessions_beyond_the_limit_are_refused(tmp_path: Path) -> None:
    async with serving_users(tmp_path, sessions_per_user=1) as users:
        assert (await users.ask(users.ann, "one")).status_code == 200
        for refused in (
            await users.ask(users.ann, "two"),
            await users.served.http.post("/api/v2/sessions", json={"session_id": "two"}, headers=users.ann),
        ):
            assert (refused.status_code, refused.json()["code"]) == (429, "too_many_sessions")
            assert "retry-after" not in refused.headers
        assert (await users.ask(users.ann, "one")).status_code == 200
        assert (await users.ask(users.ben, "two")).status_code == 200
        await users.served.http.delete("/sessions/one", headers=users.ann)
        assert (await users.ask(users.ann, "two")).status_code == 200


async def test_concurrent_creation_does_not_exceed_the_session_limit(tmp_path: Path) -> None:
    async with serving_users(tmp_path, sessions_per_user=3, runs_per_user=100) as users:

        async def made(number: int) -> str:
            if number % 3 == 0:
                return code_of(await users.ask(users.ann, f"s{number}"))
            if number % 3 == 1:
                return code_of(await users.served.http.post("/api/v2/sessions", json={}, headers=users.ann))
            async with socket(users.served, f"s{number}", headers=users.ann, agent_type="echo") as ws:
                return (await ws.receive()).get("error_code", "")

        codes = await asyncio.gather(*(made(number) for number in range(30)))
        assert sorted(codes) == [""] * 3 + ["too_many_sessions"] * 27
        listed = (await users.served.http.get("/sessions", headers=users.ann)).json()
        assert len(listed["sessions"]) == 3


@pytest.mark.parametrize("kind", ["chat", "session", "socket"])
async def test_concurrent_opening_does_not_exceed_the_stream_limit(tmp_path: Path, kind: str) -> None:
    async with serving_users(tmp_path, streams_per_user=3, runs_per_user=100) as users:
        hub, http = users.served.runtime.hub, users.served.http
        await users.ask(users.ann, "t")

        async def opened(number: int, stay: AsyncExitStack) -> str:
            if kind == "socket":
                opening = socket(users.served, f"s{number}", headers=users.ann, agent_type="echo")
                return (await (await stay.enter_async_context(opening)).receive()).get("error_code", "")
            if kind == "chat":
                body = asking("hi", session_id=f"s{number}", agent="patient")
                opening = http.stream("POST", "/chat/stream", json=body, headers=users.ann)
            else:
                opening = http.stream("GET", "/sessions/t/stream", headers=users.ann)
            reply = await stay.enter_async_context(opening)
            return "" if reply.is_success else json.loads(await reply.aread())["code"]

        async with AsyncExitStack() as stay:
            codes = await asyncio.gather(*(opened(number, stay) for number in range(25)))
            assert sorted(codes) == [""] * 3 + ["too_many_streams"] * 22
            assert hub.viewers_of("ann") == 3
        await eventually(lambda: hub.viewers_of("ann") == 0)


async def test_complete_answer_counts_as_a_stream(tmp_path: Path) -> None:
    async with serving_users(tmp_path, streams_per_user=2) as users:
        runtime, http = users.served.runtime, users.served.http
        body = asking("hi", session_id="s", agent="patient", request_id="r")
        asked = [asyncio.create_task(http.post("/chat", json=body, headers=users.ann)) for _ in range(2)]
        await eventually(lambda: runtime.hub.viewers_of("ann") == 2 and runtime.sessions.count == 1)
        for path in ("/chat", "/chat/stream"):
            refused = await http.post(path, json=body | {"session_id": "t"}, headers=users.ann)
            assert (refused.status_code, code_of(refused)) == (429, "too_many_streams")
        assert code_of(await users.ask(users.ben, "s")) == ""
        for task in asked:
            task.cancel()
        await eventually(lambda: runtime.hub.viewers_of("ann") == 0)  # the run continues without them
        assert runtime.sessions.count == 1


async def test_body_reservation_is_released_when_the_run_begins_or_is_refused(tmp_path: Path) -> None:
    async with serving_users(tmp_path, streams_per_user=20, request_bytes_per_user=1_000_000) as users:
        runtime, http = users.served.runtime, users.served.http

        async def ask(**more: Any) -> httpx.Response:
            body = asking("x" * 50_000, session_id="s", agent="patient") | more
            return await http.post("/chat", json=body, headers=users.ann)

        mistakes: list[dict[str, Any]] = [{"agent": "nobody"}, {"messages": []}, {"session_id": "/"}, {"if_busy": "no"}]
        for wrong in mistakes:
            assert (await ask(**wrong)).status_code in (404, 422)
            assert runtime.body_budget.held("ann") == 0
        first = asyncio.create_task(ask(request_id="one"))
        await eventually(lambda: runtime.sessions.count == 1)
        await eventually(lambda: runtime.body_budget.held("ann") == 0)  # the run has taken the messages over
        assert (await ask()).status_code == 409
        twins = [asyncio.create_task(ask(request_id="one")) for _ in range(9)]
        await eventually(lambda: runtime.hub.viewers_of("ann") == 10 and runtime.body_budget.held("ann") == 0)
        waits = [asyncio.create_task(ask(request_id="two", if_busy="wait"))]
        await eventually(lambda: len(runtime.queues) == 1)
        waits += [asyncio.create_task(ask(request_id="two", if_busy="wait")) for _ in range(2)]
        await eventually(lambda: runtime.hub.viewers_of("ann") == 13)
        await eventually(lambda: 50_000 < runtime.body_budget.held("ann") < 60_000)  # the others are repeats
        for task in waits:
            task.cancel()
        await eventually(lambda: runtime.hub.viewers_of("ann") == 10)
        assert runtime.body_budget.held("ann") > 0  # the queued run still holds it
        run_id = (await http.get("/sessions/s", headers=users.ann)).json()["run_id"]
        await http.post(f"/runs/{run_id}/cancel", headers=users.ann)
        replies = await asyncio.gather(first, *twins)
        assert {reply.json()["run_id"] for reply in replies} == {run_id}
        await eventually(lambda: runtime.body_budget.held("ann") == 0)


async def test_messages_are_kept_only_by_the_run(tmp_path: Path) -> None:
    """Only the run keeps the messages, not the requests that wait for its end."""
    async with serving_users(tmp_path) as users:
        runtime, http = users.served.runtime, users.served.http
        mark = f"mark-{tmp_path.name}"
        body = asking(mark, session_id="s", agent="patient", request_id="one")

        gc.freeze()  # the objects that exist already need not be searched

        def kept() -> int:
            gc.collect()
            found = [one for one in gc.get_objects() if isinstance(one, Message) and one.text == mark]
            return len(found)

        first = asyncio.create_task(http.post("/chat", json=body, headers=users.ann))
        await eventually(lambda: runtime.sessions.count == 1)
        more = [asyncio.create_task(http.post("/chat", json=body, headers=users.ann)) for _ in range(4)]
        await eventually(lambda: runtime.hub.viewers_of("ann") == 5)
        await eventually(lambda: kept() == 1, 60)  # a search of all objects takes long
        gc.unfreeze()
        for task in (first, *more):
            task.cancel()


async def test_request_counts_for_the_user_that_the_body_names(tmp_path: Path) -> None:
    async with serving(agents.echo, data=tmp_path, auth__api_key="sesame", limits__requests_per_minute=4) as served:
        pipe = Keyring(tmp_path).create("pipe", ("use", "on-behalf-of"), 1)[1]
        for key in ("sesame", pipe):
            headers = {"authorization": f"Bearer {key}"}

            async def codes(user: str, path: str, headers: Headers = headers) -> list[str]:
                body = asking("hi", user_id=user)
                return [code_of(await served.http.post(path, json=body, headers=headers)) for _ in range(5)]

            for user, path in ((f"cleo-{key[:3]}", "/chat"), (f"dora-{key[:3]}", "/chat/stream")):
                assert await codes(user, path) == [""] * 4 + ["too_many_requests"]
            assert (await served.http.get("/sessions", headers=headers)).status_code == 200
        invalid = [await served.http.post("/chat", json={}, headers=headers) for _ in range(4)]
        assert [code_of(reply) for reply in invalid] == ["invalid"] * 3 + ["too_many_requests"]


async def test_refused_socket_releases_its_stream(tmp_path: Path) -> None:
    async with serving_users(tmp_path, streams_per_user=1) as users:
        for wrong in ({"agent_type": "nobody"}, {"max_steps": "x"}, {"after": "99"}, {"format": "x"}):
            async with socket(users.served, headers=users.ann, **wrong) as refused:
                assert (await refused.error())[1] != "too_many_streams"
        assert users.served.runtime.hub.viewers_of("ann") == 0


async def test_local_user_has_no_limits(tmp_path: Path) -> None:
    async with serving(
        agents.echo, data=tmp_path, limits__requests_per_minute=1, limits__sessions_per_user=1
    ) as served:
        for number in range(3):
            reply = await served.http.post("/chat", json=asking("hi", session_id=f"s{number}"))
            assert reply.status_code == 200
