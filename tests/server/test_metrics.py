"""The metrics for Prometheus: what is counted, who may read them, and that they identify no user."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from limelight.errors import LeaseLost, StoreUnavailable, all_errors
from limelight.events import AnyEvent, RunFailed, RunStarted, TextDelta
from limelight.messages import Message
from limelight.models import Append
from limelight.sources.base import Context
from limelight.stores.sqlite import SqliteStore
from tests.server.keyed_server import KeyedServer, start_waiting_run
from tests.server.prometheus import MetricsReader
from tests.server.v2.socket_client import socket
from tests.stores.operations import begin, opened
from tests.support import agents
from tests.support.server import Served, asking, collect, offer, serving
from tests.support.wait import eventually

LABELS = {
    "limelight_connections": {"kind"},
    "limelight_connections_closed": {"reason"},
    "limelight_info": {"version"},
    "limelight_runs": {"agent", "outcome", "code"},
    "limelight_first_event_seconds": {"agent"},
    "limelight_viewers": {"kind", "format"},
    "limelight_limit_hits": {"code"},
    "limelight_store_errors": {"during", "code"},
}
"""All labels. Clients must not be able to choose the values of a label."""


async def mute(messages: list[Message], ctx: Context) -> AsyncIterator[str]:
    """Fails before its first event."""
    raise ValueError("no voice")
    yield ""


async def inventor(messages: list[Message], ctx: Context) -> AsyncIterator[AnyEvent]:
    """Fails with an invented code."""
    yield RunFailed(code=f"because_{ctx.run_id}", message="no reason")


class Waiter:
    """An agent that emits a word for each release of `may_continue`."""

    def __init__(self) -> None:
        self.may_continue = asyncio.Semaphore(0)

    async def run(self, messages: list[Message], ctx: Context) -> AsyncIterator[str]:
        for word in ("one", "two"):
            await self.may_continue.acquire()
            yield word


# Runs


@pytest.mark.parametrize(
    ("agent", "labels", "has_first_event"),
    [
        (agents.talker, "agent=talker,outcome=finished", True),
        (agents.crasher, "agent=crasher,code=agent_error,outcome=failed", True),
        (mute, "agent=mute,code=agent_error,outcome=failed", False),
        (inventor, "agent=inventor,code=other,outcome=failed", False),
    ],
)
async def test_run_is_counted_with_its_outcome_events_and_commits(
    tmp_path: Path, agent: Any, labels: str, has_first_event: bool
) -> None:
    name, ended = agent.__name__, f"limelight_runs_total{{{labels}}}"
    async with serving(agent, agents.echo, data=tmp_path) as served:
        metrics, commits = await MetricsReader.of(served), Commits(served)
        found = await collect(served.ask("go", agent=name, format="records"))
        expected = {ended: 1, "limelight_events_total": len(found), "limelight_commit_seconds_count": commits.count}
        if has_first_event:
            expected[f"limelight_first_event_seconds_count{{agent={name}}}"] = 1
        assert await metrics.changed() == expected
        assert commits.records == len(found)


async def test_stopped_run_is_counted_as_cancelled(tmp_path: Path) -> None:
    async with serving(agents.patient, data=tmp_path) as served:
        metrics = await MetricsReader.of(served)
        stream = served.ask("go", session_id="s")
        await collect(stream, until=lambda frame: frame.type == "tool_start")
        run_id = (await served.http.get("/sessions/s")).json()["run_id"]
        assert await metrics.changed("limelight_runs_total", "limelight_runs_live") == {"limelight_runs_live": 1}
        await served.http.post(f"/runs/{run_id}/cancel")
        assert await metrics.changed("limelight_runs_total", "limelight_runs_live") == {
            "limelight_runs_total{agent=patient,outcome=cancelled}": 1,
            "limelight_runs_live": -1,
        }


async def test_recovered_run_is_counted_as_interrupted(tmp_path: Path) -> None:
    async with opened(lambda: SqliteStore.from_url("sqlite", tmp_path)) as store:
        run = await begin(store, "run_left")
        await run.write(RunStarted(agent="echo"), TextDelta(message_id="m", text="half"))
    async with serving(agents.echo, data=tmp_path) as served:
        samples = await MetricsReader(served).read()
        assert samples["limelight_runs_total{agent=echo,code=interrupted,outcome=failed}"] == 1
        assert samples["limelight_events_total"] == 2  # the ends of the text and of the run
        assert samples["limelight_commit_seconds_count"] == 1
        assert samples["limelight_first_event_seconds_count{agent=echo}"] == 0


async def test_first_event_seconds_start_with_the_request(tmp_path: Path) -> None:
    waiter = Waiter()
    async with serving(data=tmp_path, agents=[offer(waiter.run, "waiter")]) as served:
        metrics, asked_at = await MetricsReader.of(served), perf_counter()
        stream = served.ask("go", format="records")
        first = await anext(stream)
        assert first.data["event"]["kind"] == "run_started"
        seen_at = perf_counter()
        assert await metrics.changed("limelight_first_event_seconds_count") == {}
        waited = perf_counter() - seen_at
        for _ in range(2):
            waiter.may_continue.release()
        await collect(stream)
        took = await metrics.changed("limelight_first_event_seconds_count", "limelight_first_event_seconds_sum")
        assert took.pop("limelight_first_event_seconds_count{agent=waiter}") == 1
        ((_, seconds),) = took.items()
        assert waited <= seconds <= perf_counter() - asked_at


async def test_first_event_seconds_include_the_queue(tmp_path: Path) -> None:
    waiter = Waiter()
    async with serving(data=tmp_path, agents=[offer(waiter.run, "waiter")]) as served:
        first = asyncio.create_task(collect(served.ask("one", session_id="s")))
        await eventually(lambda: served.runtime.sessions.count == 1)
        second = asyncio.create_task(collect(served.ask("two", session_id="s", if_busy="wait")))
        await eventually(lambda: len(served.runtime.queues) == 1)
        queued_at, metrics = perf_counter(), MetricsReader(served)
        await asyncio.sleep(0.3)  # longer than the rest of the test
        for _ in range(2):
            waiter.may_continue.release()
        await first
        await metrics.read()
        turn_at = perf_counter()
        for _ in range(2):
            waiter.may_continue.release()
        await second
        sums = await metrics.changed("limelight_first_event_seconds_sum")
        assert sums["limelight_first_event_seconds_sum{agent=waiter}"] >= turn_at - queued_at


# Gauges


async def test_gauges_count_live_waiting_and_queued_runs(keyed: KeyedServer) -> None:
    ann = keyed.headers("ann")
    metrics = await MetricsReader.of(keyed.served, keyed.headers("root", "admin"))
    gauges = (
        "limelight_runs_live",
        "limelight_runs_waiting",
        "limelight_approvals_waiting",
        "limelight_requests_queued",
    )
    names = await start_waiting_run(keyed.served, ann)
    expected = {"limelight_runs_live": 1, "limelight_runs_waiting": 1, "limelight_approvals_waiting": 1}
    assert await metrics.changed(*gauges) == expected
    body = asking("go", session_id="s", agent="echo", if_busy="wait")
    queued = [asyncio.create_task(keyed.served.http.post("/chat", json=body, headers=ann)) for _ in range(2)]
    await eventually(lambda: len(keyed.served.runtime.queues) == 2)
    assert await metrics.changed(*gauges) == {"limelight_requests_queued": 2}
    path = f"/runs/{names['run_id']}/approvals/{names['approval_id']}"
    assert (await keyed.served.http.post(path, json={"decision": "approve"}, headers=ann)).status_code == 200
    for waiting in queued:
        assert (await waiting).status_code == 200
    await eventually(lambda: keyed.served.runtime.sessions.count == 0)
    assert await metrics.changed(*gauges) == {
        "limelight_runs_live": -1,
        "limelight_runs_waiting": -1,
        "limelight_approvals_waiting": -1,
        "limelight_requests_queued": -2,
    }


async def test_viewers_are_counted_by_kind_and_format(tmp_path: Path) -> None:
    async with serving(agents.talker, data=tmp_path) as served:
        await collect(served.ask("go", session_id="s"))
        metrics, open_streams = await MetricsReader.of(served), served.runtime.open_streams
        async with AsyncExitStack() as stack:
            for params in ({}, {}, {"format": "records"}):
                reply = await stack.enter_async_context(served.http.stream("GET", "/sessions/s/stream", params=params))
                assert reply.status_code == 200
            for query in ({}, {"format": "records"}, {"format": "records", "packed": "1"}):
                one = await stack.enter_async_context(socket(served, headers=None, **query))
                assert (await one.receive())["type"] == "state"
            expected = {
                "limelight_viewers{format=typed,kind=stream}": 2,
                "limelight_viewers{format=records,kind=stream}": 1,
                "limelight_viewers{format=v2,kind=socket}": 1,
                "limelight_viewers{format=records,kind=socket}": 1,
                "limelight_viewers{format=packed_records,kind=socket}": 1,
            }
            assert await metrics.changed() == expected
        await eventually(lambda: open_streams.count == 0)
        assert await metrics.changed() == {series: -count for series, count in expected.items()}


# The store


async def test_failed_commits_are_counted_by_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(agents.echo, data=tmp_path) as served:
        metrics, append = await MetricsReader.of(served), served.runtime.store.append
        failures = [StoreUnavailable("the disk is full"), StoreUnavailable("the disk is full"), ValueError("ours")]

        async def failing(batch: Sequence[Append]) -> None:
            if failures:
                raise failures.pop(0)
            await append(batch)

        monkeypatch.setattr(served.runtime.store, "append", failing)
        found = await collect(served.ask("go", format="records"))
        assert await metrics.changed("limelight_store_errors_total", "limelight_events_total") == {
            "limelight_store_errors_total{code=store_unavailable,during=commit}": 2,
            "limelight_store_errors_total{code=internal,during=commit}": 1,
            "limelight_events_total": len(found),
        }


async def test_lost_lease_is_not_counted_as_a_store_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(agents.patient, data=tmp_path) as served:
        metrics = await MetricsReader.of(served)

        tried: list[int] = []

        async def lost(batch: Sequence[Append]) -> None:
            tried.append(len(batch))
            raise LeaseLost()

        monkeypatch.setattr(served.runtime.store, "append", lost)
        asked = asyncio.create_task(served.http.post("/chat", json=asking("go")))
        await eventually(lambda: tried and served.runtime.sessions.count == 0)
        changes = await metrics.changed()
        monkeypatch.undo()
        asked.cancel()
        assert changes == {}


async def test_store_errors_of_requests_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(agents.echo, data=tmp_path) as served, socket(served, agent_type="echo") as ws:
        await ws.receive()
        metrics = await MetricsReader.of(served)

        async def broken(*_: Any) -> None:
            raise StoreUnavailable("the disk is gone")

        monkeypatch.setattr(served.runtime.store, "session", broken)
        assert (await served.problem("GET", "/sessions/s"))["code"] == "store_unavailable"
        await ws.send("get_state")
        assert (await ws.error())[1] == "store_unavailable"
        series = "limelight_store_errors_total{code=store_unavailable,during=request}"
        assert await metrics.changed() == {series: 2}


async def test_store_error_of_a_stream_is_counted_and_not_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(agents.echo, data=tmp_path) as served:
        run_id = (await served.http.post("/chat", json=asking("hi"))).json()["run_id"]
        metrics = await MetricsReader.of(served)

        async def broken(*_: Any, **__: Any) -> None:
            raise StoreUnavailable("the disk is gone")

        monkeypatch.setattr(served.runtime.store, "records", broken)
        cut = await served.http.get(f"/runs/{run_id}/stream?after=0")
        assert (cut.status_code, "done" in cut.text) == (200, False)  # so that the client reconnects
        monkeypatch.undo()
        series = "limelight_store_errors_total{code=store_unavailable,during=request}"
        assert await metrics.changed() == {series: 1}
    assert not caplog.records


# Access and privacy


@pytest.mark.requirement("metrics-private")
async def test_metrics_need_the_scope_admin(keyed: KeyedServer) -> None:
    assert (await keyed.served.http.get("/metrics")).status_code == 200  # without keys, for this machine
    use, admin = keyed.headers("ann"), keyed.headers("prometheus", "admin")
    assert (await keyed.served.http.get("/metrics")).status_code == 401
    assert (await keyed.served.problem("GET", "/metrics", headers=use))["code"] == "forbidden"
    reply = await keyed.served.http.get("/metrics", headers=admin)
    assert (reply.status_code, reply.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")


@pytest.mark.requirement("metrics-private")
async def test_metrics_contain_no_value_of_a_caller(keyed: KeyedServer) -> None:
    ann = keyed.headers("ann_the_secret_user")
    body = asking("a secret question", session_id="secret_session", request_id="secret_request", agent="echo")
    reply = await keyed.served.http.post("/chat", json=body, headers=ann)
    wrong = asking("hi", agent="secret_agent", session_id="secret_session")
    assert (await keyed.served.http.post("/chat", json=wrong, headers=ann)).status_code == 404
    text = (await keyed.served.http.get("/metrics", headers=keyed.headers("root", "admin"))).text
    assert "secret" not in text
    assert reply.json()["run_id"] not in text
    for family in text_string_to_metric_families(text):
        of_form = {"le"} if family.type == "histogram" else set[str]()
        for sample in family.samples:
            assert family.name.startswith(("limelight_", "process_"))
            assert set(sample.labels) - of_form == LABELS.get(family.name, set()), family.name


async def test_metric_names_follow_prometheus_conventions(keyed: KeyedServer) -> None:
    families = list(text_string_to_metric_families((await keyed.served.http.get("/metrics")).text))
    for family in families:
        assert family.documentation, family.name
        for sample in family.samples:
            assert sample.name.endswith("_total") == (family.type == "counter"), sample.name
        if family.type == "histogram":
            assert family.name.endswith("_seconds")
    assert {"process_cpu_seconds", "process_resident_memory_bytes", "process_open_fds"} <= {f.name for f in families}


async def test_each_server_has_its_own_metrics(tmp_path: Path) -> None:
    async with (
        serving(agents.echo, data=tmp_path / "one") as one,
        serving(agents.echo, data=tmp_path / "two") as two,
    ):
        readers = [await MetricsReader.of(one), await MetricsReader.of(two)]
        await collect(one.ask("go"))
        assert [bool(await metrics.changed()) for metrics in readers] == [True, False]


def test_is_limit_marks_the_errors_of_limits() -> None:
    by_status = {error.code for error in all_errors() if error.status in (408, 413, 429)}
    limits = {error.code for error in all_errors() if error.is_limit}
    assert by_status | {"queue_full", "session_full", "log_full", "run_timeout", "silence_timeout"} == limits


class Commits:
    """Counts the commits of a server's store, and their Records."""

    def __init__(self, served: Served) -> None:
        self.count = self.records = 0
        self._append = served.runtime.store.append
        served.runtime.store.append = self._counted

    async def _counted(self, batch: Sequence[Append]) -> None:
        await self._append(batch)
        self.count += 1
        self.records += sum(len(append.records) for append in batch)
