"""Limits of users: each is refused with its code, and nobody else notices."""

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
from limelight.server.process import connection
from limelight.server.runtime import SIGNAL_BURST
from limelight.server.v2.socket import MESSAGE_BURST, TOO_MANY_MESSAGES
from tests.server.keyed_server import everything, maker
from tests.server.v2.socket_client import socket
from tests.support import agents
from tests.support.server import Served, asking, collect, serving
from tests.support.wait import eventually

Headers = dict[str, str]


class Users:
    """A server on which everybody has a key."""

    def __init__(self, served: Served, data: Path) -> None:
        self.served = served
        self._keyring = Keyring(data)
        self.ann, self.ben = self._headers("ann"), self._headers("ben")

    def _headers(self, user: str) -> Headers:
        return {"authorization": f"Bearer {self._keyring.create(user, ('use',), 1)[1]}"}

    async def ask(self, headers: Headers, session_id: str, agent: str = "echo") -> Any:
        body = asking("hi", session_id=session_id, agent=agent)
        return await self.served.http.post("/chat", json=body, headers=headers)

    def stream(self, headers: Headers, session_id: str, agent: str = "patient") -> AsyncIterator[Any]:
        body = asking("hi", session_id=session_id, agent=agent)
        return self.served.stream("POST", "/chat/stream", json=body, headers=headers)


async def users(stack: AsyncExitStack, data: Path, **limits: int) -> Users:
    settings: dict[str, Any] = {f"limits__{name}": value for name, value in limits.items()}
    return Users(await stack.enter_async_context(serving(agents.echo, agents.patient, data=data, **settings)), data)


def code_of(reply: httpx.Response) -> str:
    """The code of a refusal; "" if it is none."""
    return "" if reply.is_success else reply.json()["code"]


async def test_requests_in_a_minute(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        house = await users(stack, tmp_path, requests_per_minute=5)
        replies = [await house.served.http.get("/agents", headers=house.ann) for _ in range(11)]
        refused = [reply for reply in replies if reply.status_code == 429]
        assert len(refused) >= 1  # the minute may have changed in between, once
        assert refused[0].json()["code"] == "too_many_requests"
        assert 1 <= int(refused[0].headers["retry-after"]) <= 60
        assert refused[0].json()["retry_after"] == int(refused[0].headers["retry-after"])
        assert (await house.served.http.get("/agents", headers=house.ben)).status_code == 200
        assert (await house.served.http.get("/health", headers=house.ann)).status_code == 200


async def test_questions_on_a_socket_count_too(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        house = await users(stack, tmp_path, requests_per_minute=3)
        async with socket(house.served, headers=house.ann, agent_type="echo") as watching:
            codes: list[str] = []
            for _ in range(9):
                await watching.say("query", query="hi", if_busy="cancel")
            while "too_many_requests" not in codes:
                codes.append((await watching.error())[1])
            await watching.say("ping")
            await watching.until_type("pong")


@pytest.mark.parametrize("said", ["get_state", "get_messages", "resume", "nonsense"])
async def test_whatever_else_is_said_on_a_socket_counts_too(tmp_path: Path, said: str) -> None:
    async with AsyncExitStack() as stack:
        house = await users(stack, tmp_path, requests_per_minute=3)
        async with socket(house.served, headers=house.ann, agent_type="echo") as watching:
            for _ in range(9):  # the minute may change in between, once
                await watching.say(said, after="0")
            frames = await watching.until(lambda frame: frame.get("error_code") == "too_many_requests")
            assert 1 <= frames[-1]["retry_after"] <= 60


async def test_what_ends_a_run_gets_through_whatever_the_limit(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        house = await users(stack, tmp_path, requests_per_minute=3)
        async with socket(house.served, headers=house.ann, agent_type="patient") as watching:
            await watching.say("query", query="hi")
            await watching.until_state("processing")
            for _ in range(9):
                await watching.say("get_state")
            await watching.until(lambda frame: frame.get("error_code") == "too_many_requests")
            for _ in range(9):
                await watching.say("ping")
                await watching.until_type("pong")
            await watching.say("cancel")
            await watching.until_state("idle")


async def test_an_answer_gets_through_whatever_the_limit_and_a_guess_does_not(tmp_path: Path) -> None:
    """Who asks for questions that nobody has asked makes the server look through logs: that is a request."""
    settings: dict[str, Any] = {"limits__requests_per_minute": 3}
    async with serving(maker, data=tmp_path, **settings) as served:
        ann = Users(served, tmp_path).ann
        async with socket(served, headers=ann, agent_type="maker", format="records") as watching:
            await watching.say("query", query="hi")
            asked = await watching.until(lambda frame: frame.get("event", {}).get("kind") == "approval_requested")
            for number in range(9):  # the minute may change in between, once
                await watching.say("approve", approval_id=f"none{number}")
            told = await watching.until(lambda frame: frame.get("error_code") == "too_many_requests")
            assert {frame["error_code"] for frame in told if frame["type"] == "error"} >= {"approval_not_found"}
            await watching.say("approve", approval_id=asked[-1]["event"]["approval_id"])
            await watching.until_type("decided")


async def spend_requests(served: Served, headers: Headers) -> None:
    """Ask until the requests of this minute are spent."""
    while (await served.http.get("/agents", headers=headers)).status_code != 429:
        pass


async def test_stop_is_not_refused_when_the_requests_are_spent(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        house = await users(stack, tmp_path, requests_per_minute=5)
        await anext(house.stream(house.ann, "s"))
        run_id = (await house.served.http.get("/sessions/s", headers=house.ann)).json()["run_id"]
        await spend_requests(house.served, house.ann)
        stop = house.served.http.post
        assert (await stop(f"/runs/{run_id}/cancel", headers=house.ben)).status_code == 404
        stopped = await stop(f"/runs/{run_id}/cancel", headers=house.ann)
        assert (stopped.status_code, stopped.json()["state"]) == (200, "cancelled")
        again = [code_of(await stop(f"/runs/{run_id}/cancel", headers=house.ann)) for _ in range(2 * SIGNAL_BURST)]
        assert again[:10] == [""] * 10  # a second click
        assert "too_many_requests" in again  # for a run that has ended, more of them are requests like any other


async def test_stop_of_a_queued_request_is_not_refused_when_the_requests_are_spent(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        house = await users(stack, tmp_path, requests_per_minute=5)
        await anext(house.stream(house.ann, "s"))
        body = asking("hi", session_id="s", agent="patient", if_busy="wait")
        queued = stack.enter_async_context(
            house.served.http.stream("POST", "/chat/stream", json=body, headers=house.ann)
        )
        run_id = (await queued).headers["x-run-id"]
        await spend_requests(house.served, house.ann)
        stopped = await house.served.http.post(f"/runs/{run_id}/cancel", headers=house.ann)
        assert (stopped.status_code, stopped.json()["state"]) == (200, "cancelled")


async def test_decision_is_not_refused_when_the_requests_are_spent(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"limits__requests_per_minute": 5}
    async with serving(maker, data=tmp_path, **settings) as served:
        ann = Users(served, tmp_path).ann
        names = await everything(served, ann)
        await spend_requests(served, ann)
        path = f"/runs/{names['run_id']}/approvals/{names['approval_id']}"
        decided = await served.http.post(path, json={"decision": "approve"}, headers=ann)
        assert (decided.status_code, decided.json()) == (200, {"state": "approve"})


async def test_repeated_stops_of_a_live_run_are_answered_and_send_one_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(agents.deaf, data=tmp_path, limits__requests_per_minute=5) as served:
        ann = Users(served, tmp_path).ann
        body = asking("hi", session_id="s", agent="deaf")
        await anext(served.stream("POST", "/chat/stream", json=body, headers=ann))
        (live,) = served.runtime.sessions.runs
        signals: list[object] = []
        monkeypatch.setattr(served.runtime.store, "signal", signalled(served, signals))
        path = f"/runs/{live.execution.run.run_id}/cancel"
        first = asyncio.create_task(served.http.post(path, headers=ann))
        await eventually(lambda: live.execution.stopping)
        repeats = await asyncio.gather(*(served.http.post(path, headers=ann) for _ in range(2 * SIGNAL_BURST)))
        assert {reply.status_code for reply in (*repeats, await first)} == {200}
        assert len(signals) == 1


def signalled(served: Served, signals: list[object]) -> Callable[[Any], Awaitable[None]]:
    """The store's `signal`, which also keeps what it is given."""
    send = served.runtime.store.signal

    async def signal(one: Any) -> None:
        signals.append(one)
        await send(one)

    return signal


@pytest.mark.parametrize("said", ["ping", "get_state", "cancel", "nonsense"])
async def test_socket_that_sends_too_many_messages_is_closed_with_the_reason(tmp_path: Path, said: str) -> None:
    async with AsyncExitStack() as stack:
        house = await users(stack, tmp_path, requests_per_minute=100_000)
        flood = await stack.enter_async_context(socket(house.served, headers=house.ann, agent_type="echo"))
        other = await stack.enter_async_context(socket(house.served, headers=house.ann, agent_type="echo"))
        for _ in range(2 * MESSAGE_BURST):
            with suppress(ConnectionClosed):
                await flood.say(said)
        frames: list[Any] = []
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                frames.append(await flood.hear())
        assert (frames[-1]["error_code"], frames[-1]["message"]) == ("too_many_requests", TOO_MANY_MESSAGES)
        assert closed.value.rcvd is not None
        assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1013, "too_many_requests")
        await other.say("ping")
        await other.until_type("pong")


@pytest.mark.parametrize("kind", ["ping", "pong"])
async def test_socket_that_sends_too_many_control_frames_is_closed(tmp_path: Path, kind: str) -> None:
    async with AsyncExitStack() as stack:
        house = await users(stack, tmp_path)
        flood = await stack.enter_async_context(socket(house.served, headers=house.ann, agent_type="echo"))
        with pytest.raises(ConnectionClosed) as closed:
            async with asyncio.timeout(20):
                while True:
                    await getattr(flood.connection, kind)()
                    await asyncio.sleep(0)
        assert closed.value.rcvd is not None
        assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1008, "too many ping or pong frames")


async def test_ping_of_a_client_that_reads_late_is_answered_when_it_reads(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        house = await users(stack, tmp_path)
        late = await stack.enter_async_context(socket(house.served, headers=house.ann, agent_type="echo"))
        (server_side,) = [
            one for one in gc.get_objects() if type(one) is connection.WebSocketConnection and not one.disconnected
        ]
        server_side.pause_writing()  # as when the buffers are full
        first, latest = await late.connection.ping(b"first"), await late.connection.ping(b"latest")
        await eventually(lambda: server_side._late_pong.endswith(b"latest"))  # pyright: ignore[reportPrivateUsage]
        server_side.resume_writing()
        async with asyncio.timeout(20):
            await asyncio.gather(first, latest)  # the answer to a later ping counts for those before it


async def test_socket_that_sends_endless_fragments_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MAX_FRAGMENTS", 50)

    async def fragments() -> AsyncIterator[str]:
        while True:
            yield ""
            await asyncio.sleep(0)  # the client has to read the close frame

    async with AsyncExitStack() as stack:
        house = await users(stack, tmp_path)
        flood = await stack.enter_async_context(socket(house.served, headers=house.ann, agent_type="echo"))
        with pytest.raises(ConnectionClosed) as closed:
            async with asyncio.timeout(20):
                await flood.connection.send(fragments())
        assert closed.value.rcvd is not None
        assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1008, "too many fragments")


async def test_runs_at_once(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        house = await users(stack, tmp_path, runs_per_user=2)
        for number in range(2):
            await anext(house.stream(house.ann, f"s{number}"))
        refused = await house.ask(house.ann, "s3", "patient")
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_runs")
        assert int(refused.headers["retry-after"]) > 0
        assert (await house.served.http.get("/sessions/s3", headers=house.ann)).status_code == 404
        assert (await house.ask(house.ben, "s")).status_code == 200
        run_id = (await house.served.http.get("/sessions/s0", headers=house.ann)).json()["run_id"]
        await house.served.http.post(f"/runs/{run_id}/cancel", headers=house.ann)
        assert (await house.ask(house.ann, "s3")).status_code == 200


async def test_runs_of_all_together(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        house = await users(stack, tmp_path, runs=1)
        await anext(house.stream(house.ann, "s"))
        refused = await house.ask(house.ben, "s")
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_runs")


async def test_sessions(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        house = await users(stack, tmp_path, sessions_per_user=1)
        assert (await house.ask(house.ann, "one")).status_code == 200
        for refused in (
            await house.ask(house.ann, "two"),
            await house.served.http.post("/api/v2/sessions", json={"session_id": "two"}, headers=house.ann),
        ):
            assert (refused.status_code, refused.json()["code"]) == (429, "too_many_sessions")
            assert "retry-after" not in refused.headers
        assert (await house.ask(house.ann, "one")).status_code == 200
        assert (await house.ask(house.ben, "two")).status_code == 200
        await house.served.http.delete("/sessions/one", headers=house.ann)
        assert (await house.ask(house.ann, "two")).status_code == 200


async def test_sessions_that_are_made_at_once_are_counted_too(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        house = await users(stack, tmp_path, sessions_per_user=3, runs_per_user=100)

        async def made(number: int) -> str:
            if number % 3 == 0:
                return code_of(await house.ask(house.ann, f"s{number}"))
            if number % 3 == 1:
                return code_of(await house.served.http.post("/api/v2/sessions", json={}, headers=house.ann))
            async with socket(house.served, f"s{number}", headers=house.ann, agent_type="echo") as watching:
                return (await watching.hear()).get("error_code", "")

        codes = await asyncio.gather(*(made(number) for number in range(30)))
        assert sorted(codes) == [""] * 3 + ["too_many_sessions"] * 27
        listed = (await house.served.http.get("/sessions", headers=house.ann)).json()
        assert len(listed["sessions"]) == 3


@pytest.mark.parametrize("kind", ["stream", "socket"])
async def test_streams(tmp_path: Path, kind: str) -> None:
    async with AsyncExitStack() as stack:
        house = await users(stack, tmp_path, streams_per_user=1)
        async with socket(house.served, "s", headers=house.ann, agent_type="echo") as watching:
            await watching.hear()
            if kind == "stream":
                path = "/sessions/s/stream"
                assert (await house.served.problem("GET", path, headers=house.ann))["code"] == "too_many_streams"
            else:
                async with socket(house.served, "s", headers=house.ann) as second:
                    assert (await second.error())[1] == "too_many_streams"
            async with socket(house.served, "s", headers=house.ben, agent_type="echo") as other:
                await other.hear()
        frames = await collect(house.stream(house.ann, "t", "echo"))
        assert frames[-1].type == "done"


@pytest.mark.parametrize("kind", ["chat", "session", "socket"])
async def test_streams_that_are_opened_at_once_are_counted_too(tmp_path: Path, kind: str) -> None:
    async with AsyncExitStack() as stack:
        house = await users(stack, tmp_path, streams_per_user=3, runs_per_user=100)
        hub, http = house.served.runtime.hub, house.served.http
        await house.ask(house.ann, "t")

        async def opened(number: int, stay: AsyncExitStack) -> str:
            if kind == "socket":
                opening = socket(house.served, f"s{number}", headers=house.ann, agent_type="echo")
                return (await (await stay.enter_async_context(opening)).hear()).get("error_code", "")
            if kind == "chat":
                body = asking("hi", session_id=f"s{number}", agent="patient")
                opening = http.stream("POST", "/chat/stream", json=body, headers=house.ann)
            else:
                opening = http.stream("GET", "/sessions/t/stream", headers=house.ann)
            reply = await stay.enter_async_context(opening)
            return "" if reply.is_success else json.loads(await reply.aread())["code"]

        async with AsyncExitStack() as stay:
            codes = await asyncio.gather(*(opened(number, stay) for number in range(25)))
            assert sorted(codes) == [""] * 3 + ["too_many_streams"] * 22
            assert hub.viewers_of("ann") == 3
        await eventually(lambda: hub.viewers_of("ann") == 0)


async def test_who_waits_for_a_whole_answer_has_a_stream(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        house = await users(stack, tmp_path, streams_per_user=2)
        runtime, http = house.served.runtime, house.served.http
        body = asking("hi", session_id="s", agent="patient", request_id="r")
        asked = [asyncio.create_task(http.post("/chat", json=body, headers=house.ann)) for _ in range(2)]
        await eventually(lambda: runtime.hub.viewers_of("ann") == 2 and runtime.sessions.count == 1)
        for path in ("/chat", "/chat/stream"):
            refused = await http.post(path, json=body | {"session_id": "t"}, headers=house.ann)
            assert (refused.status_code, code_of(refused)) == (429, "too_many_streams")
        assert code_of(await house.ask(house.ben, "s")) == ""
        for task in asked:
            task.cancel()
        await eventually(lambda: runtime.hub.viewers_of("ann") == 0)  # the run goes on, and nobody waits for it
        assert runtime.sessions.count == 1


async def test_what_requests_hold_is_let_go_when_their_run_begins_or_never_will(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        house = await users(stack, tmp_path, streams_per_user=20, request_bytes_per_user=1_000_000)
        runtime, http = house.served.runtime, house.served.http

        async def ask(**more: Any) -> httpx.Response:
            body = asking("x" * 50_000, session_id="s", agent="patient") | more
            return await http.post("/chat", json=body, headers=house.ann)

        mistakes: list[dict[str, Any]] = [{"agent": "nobody"}, {"messages": []}, {"session_id": "/"}, {"if_busy": "no"}]
        for wrong in mistakes:
            assert (await ask(**wrong)).status_code in (404, 422)
            assert runtime.body_budget.held("ann") == 0
        first = asyncio.create_task(ask(request_id="one"))
        await eventually(lambda: runtime.sessions.count == 1)
        await eventually(lambda: runtime.body_budget.held("ann") == 0)  # what is left is the run's
        assert (await ask()).status_code == 409
        twins = [asyncio.create_task(ask(request_id="one")) for _ in range(9)]
        await eventually(lambda: runtime.hub.viewers_of("ann") == 10 and runtime.body_budget.held("ann") == 0)
        waits = [asyncio.create_task(ask(request_id="two", if_busy="wait"))]
        await eventually(lambda: runtime.sessions.queued == 1)
        waits += [asyncio.create_task(ask(request_id="two", if_busy="wait")) for _ in range(2)]
        await eventually(lambda: runtime.hub.viewers_of("ann") == 13)
        await eventually(lambda: 50_000 < runtime.body_budget.held("ann") < 60_000)  # the others are the same request
        for task in waits:
            task.cancel()
        await eventually(lambda: runtime.hub.viewers_of("ann") == 10)
        assert runtime.body_budget.held("ann") > 0  # it is still to be asked
        run_id = (await http.get("/sessions/s", headers=house.ann)).json()["run_id"]
        await http.post(f"/runs/{run_id}/cancel", headers=house.ann)
        replies = await asyncio.gather(first, *twins)
        assert {reply.json()["run_id"] for reply in replies} == {run_id}
        await eventually(lambda: runtime.body_budget.held("ann") == 0)


async def test_a_body_is_not_kept_for_whoever_waits_for_its_run(tmp_path: Path) -> None:
    """The run has it, and nobody else: neither the requests that wait for its end, nor what has led to it."""
    async with AsyncExitStack() as stack:
        house = await users(stack, tmp_path)
        runtime, http = house.served.runtime, house.served.http
        mark = f"mark-{tmp_path.name}"
        body = asking(mark, session_id="s", agent="patient", request_id="one")

        def kept() -> int:
            gc.collect()
            found = [one for one in gc.get_objects() if isinstance(one, Message) and one.text == mark]
            return len(found)

        first = asyncio.create_task(http.post("/chat", json=body, headers=house.ann))
        await eventually(lambda: runtime.sessions.count == 1)
        more = [asyncio.create_task(http.post("/chat", json=body, headers=house.ann)) for _ in range(4)]
        await eventually(lambda: runtime.hub.viewers_of("ann") == 5)
        await eventually(lambda: kept() == 1, 60)  # to look at all objects that there are takes its time
        for task in (first, *more):
            task.cancel()


async def test_a_user_whom_the_body_names_is_counted_and_not_who_names_them(tmp_path: Path) -> None:
    async with serving(agents.echo, data=tmp_path, auth__api_key="sesame", limits__requests_per_minute=4) as served:
        pipe = Keyring(tmp_path).create("pipe", ("use", "on-behalf-of"), 1)[1]
        for key in ("sesame", pipe):
            headers = {"authorization": f"Bearer {key}"}

            async def codes(user: str, path: str, headers: Headers = headers) -> list[str]:
                body = asking("hi", user_id=user)
                return [code_of(await served.http.post(path, json=body, headers=headers)) for _ in range(9)]

            told = await codes(f"cleo-{key[:3]}", "/chat")
            assert told[:4] == [""] * 4 and "too_many_requests" in told  # the minute may change in between, once
            told = await codes(f"dora-{key[:3]}", "/chat/stream")
            assert told[:4] == [""] * 4 and "too_many_requests" in told
            assert (await served.http.get("/sessions", headers=headers)).status_code == 200
        nonsense = [await served.http.post("/chat", json={}, headers=headers) for _ in range(9)]
        assert {code_of(reply) for reply in nonsense} == {"invalid", "too_many_requests"}


async def test_a_socket_that_cannot_be_opened_gives_its_place_back(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        house = await users(stack, tmp_path, streams_per_user=1)
        for wrong in ({"agent_type": "nobody"}, {"max_steps": "x"}, {"after": "99"}, {"format": "x"}):
            async with socket(house.served, headers=house.ann, **wrong) as refused:
                assert (await refused.error())[1] != "too_many_streams"
        assert house.served.runtime.hub.viewers_of("ann") == 0


async def test_the_machines_own_user_has_no_limits_of_its_own(tmp_path: Path) -> None:
    async with serving(
        agents.echo, data=tmp_path, limits__requests_per_minute=1, limits__sessions_per_user=1
    ) as served:
        for number in range(3):
            reply = await served.http.post("/chat", json=asking("hi", session_id=f"s{number}"))
            assert reply.status_code == 200
