"""The numbers for Prometheus: each moves when it should, by what it should, and none says who it was."""

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
from tests.server.keyed_server import House, everything
from tests.server.prometheus import Meter
from tests.server.v2.socket_client import socket
from tests.stores.operations import begin, opened
from tests.support import agents
from tests.support.server import Served, asking, collect, offer, serving
from tests.support.wait import eventually

LABELS = {
    "limelight_info": {"version"},
    "limelight_runs": {"agent", "outcome", "code"},
    "limelight_first_event_seconds": {"agent"},
    "limelight_viewers": {"kind", "format"},
    "limelight_limit_hits": {"code"},
    "limelight_store_errors": {"during", "code"},
}
"""All labels that there are. Before you add one: nobody who asks may choose its values."""


async def mute(messages: list[Message], ctx: Context) -> AsyncIterator[str]:
    """Breaks before it has done anything."""
    raise ValueError("no voice")
    yield ""


async def inventor(messages: list[Message], ctx: Context) -> AsyncIterator[AnyEvent]:
    """Fails with a code of its own."""
    yield RunFailed(code=f"because_{ctx.run_id}", message="no reason")


class Waiter:
    """An agent that says something when it is let, and then waits to be let again."""

    def __init__(self) -> None:
        self.may_go_on = asyncio.Semaphore(0)

    async def run(self, messages: list[Message], ctx: Context) -> AsyncIterator[str]:
        for word in ("one", "two"):
            await self.may_go_on.acquire()
            yield word


# Runs


@pytest.mark.parametrize(
    ("agent", "labels", "has_done_something"),
    [
        (agents.talker, "agent=talker,outcome=finished", True),
        (agents.crasher, "agent=crasher,code=agent_error,outcome=failed", True),
        (mute, "agent=mute,code=agent_error,outcome=failed", False),
        (inventor, "agent=inventor,code=other,outcome=failed", False),
    ],
)
async def test_a_run(tmp_path: Path, agent: Any, labels: str, has_done_something: bool) -> None:
    name, ended = agent.__name__, f"limelight_runs_total{{{labels}}}"
    async with serving(agent, agents.echo, data=tmp_path) as served:
        meter, commits = await Meter.of(served), Commits(served)
        found = await collect(served.ask("go", agent=name, format="records"))
        expected = {ended: 1, "limelight_events_total": len(found), "limelight_commit_seconds_count": commits.count}
        if has_done_something:
            expected[f"limelight_first_event_seconds_count{{agent={name}}}"] = 1
        assert await meter.changed() == expected
        assert commits.records == len(found)


async def test_a_run_that_is_stopped(tmp_path: Path) -> None:
    async with serving(agents.patient, data=tmp_path) as served:
        meter = await Meter.of(served)
        stream = served.ask("go", session_id="s")
        await collect(stream, until=lambda frame: frame.type == "tool_start")
        run_id = (await served.http.get("/sessions/s")).json()["run_id"]
        assert await meter.changed("limelight_runs_total", "limelight_runs_live") == {"limelight_runs_live": 1}
        await served.http.post(f"/runs/{run_id}/cancel")
        assert await meter.changed("limelight_runs_total", "limelight_runs_live") == {
            "limelight_runs_total{agent=patient,outcome=cancelled}": 1,
            "limelight_runs_live": -1,
        }


async def test_a_run_that_another_server_left_is_counted_where_it_is_sealed(tmp_path: Path) -> None:
    async with opened(lambda: SqliteStore.from_url("sqlite", tmp_path)) as store:
        run = await begin(store, "run_left")
        await run.write(RunStarted(agent="echo"), TextDelta(message_id="m", text="half"))
    async with serving(agents.echo, data=tmp_path) as served:
        numbers = await Meter(served).read()
        assert numbers["limelight_runs_total{agent=echo,code=interrupted,outcome=failed}"] == 1
        assert numbers["limelight_events_total"] == 2  # the text is closed, and the run
        assert numbers["limelight_commit_seconds_count"] == 1
        assert numbers["limelight_first_event_seconds_count{agent=echo}"] == 0


async def test_the_first_event_is_the_agents_and_counts_from_the_request(tmp_path: Path) -> None:
    waiter = Waiter()
    async with serving(data=tmp_path, agents=[offer(waiter.run, "waiter")]) as served:
        meter, asked_at = await Meter.of(served), perf_counter()
        stream = served.ask("go", format="records")
        first = await anext(stream)
        assert first.data["event"]["kind"] == "run_started"
        seen_at = perf_counter()
        assert await meter.changed("limelight_first_event_seconds_count") == {}
        waited = perf_counter() - seen_at
        for _ in range(2):
            waiter.may_go_on.release()
        await collect(stream)
        took = await meter.changed("limelight_first_event_seconds_count", "limelight_first_event_seconds_sum")
        assert took.pop("limelight_first_event_seconds_count{agent=waiter}") == 1
        ((_, seconds),) = took.items()
        assert waited <= seconds <= perf_counter() - asked_at


async def test_what_waits_in_the_queue_waits_since_it_was_asked(tmp_path: Path) -> None:
    waiter = Waiter()
    async with serving(data=tmp_path, agents=[offer(waiter.run, "waiter")]) as served:
        first = asyncio.create_task(collect(served.ask("one", session_id="s")))
        await eventually(lambda: served.runtime.sessions.count == 1)
        second = asyncio.create_task(collect(served.ask("two", session_id="s", if_busy="wait")))
        await eventually(lambda: served.runtime.sessions.queued == 1)
        queued_at, meter = perf_counter(), Meter(served)
        await asyncio.sleep(0.3)  # longer than anything that comes after its turn
        for _ in range(2):
            waiter.may_go_on.release()
        await first
        await meter.read()
        turn_at = perf_counter()
        for _ in range(2):
            waiter.may_go_on.release()
        await second
        sums = await meter.changed("limelight_first_event_seconds_sum")
        assert sums["limelight_first_event_seconds_sum{agent=waiter}"] >= turn_at - queued_at


# What there is now


async def test_what_waits_for_a_person_and_what_waits_for_a_session(house: House) -> None:
    ann = house.headers("ann")
    meter = await Meter.of(house.served, house.headers("root", "admin"))
    levels = (
        "limelight_runs_live",
        "limelight_runs_waiting",
        "limelight_approvals_waiting",
        "limelight_requests_queued",
    )
    names = await everything(house.served, ann)
    expected = {"limelight_runs_live": 1, "limelight_runs_waiting": 1, "limelight_approvals_waiting": 1}
    assert await meter.changed(*levels) == expected
    body = asking("go", session_id="s", agent="echo", if_busy="wait")
    queued = [asyncio.create_task(house.served.http.post("/chat", json=body, headers=ann)) for _ in range(2)]
    await eventually(lambda: house.served.runtime.sessions.queued == 2)
    assert await meter.changed(*levels) == {"limelight_requests_queued": 2}
    path = f"/runs/{names['run_id']}/approvals/{names['approval_id']}"
    assert (await house.served.http.post(path, json={"decision": "approve"}, headers=ann)).status_code == 200
    for waiting in queued:
        assert (await waiting).status_code == 200
    await eventually(lambda: house.served.runtime.sessions.count == 0)
    assert await meter.changed(*levels) == {
        "limelight_runs_live": -1,
        "limelight_runs_waiting": -1,
        "limelight_approvals_waiting": -1,
        "limelight_requests_queued": -2,
    }


async def test_viewers_by_kind_and_format(tmp_path: Path) -> None:
    async with serving(agents.talker, data=tmp_path) as served:
        await collect(served.ask("go", session_id="s"))
        meter, pulse = await Meter.of(served), served.runtime.heartbeat
        async with AsyncExitStack() as watching:
            for params in ({}, {}, {"format": "records"}):
                reply = await watching.enter_async_context(
                    served.http.stream("GET", "/sessions/s/stream", params=params)
                )
                assert reply.status_code == 200
            for query in ({}, {"format": "records"}, {"format": "records", "packed": "1"}):
                one = await watching.enter_async_context(socket(served, headers=None, **query))
                assert (await one.hear())["type"] == "state"
            expected = {
                "limelight_viewers{format=typed,kind=stream}": 2,
                "limelight_viewers{format=records,kind=stream}": 1,
                "limelight_viewers{format=v2,kind=socket}": 1,
                "limelight_viewers{format=records,kind=socket}": 1,
                "limelight_viewers{format=packed_records,kind=socket}": 1,
            }
            assert await meter.changed() == expected
        await eventually(lambda: pulse.streams == 0)
        assert await meter.changed() == {series: -count for series, count in expected.items()}


# The store


async def test_commits_that_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(agents.echo, data=tmp_path) as served:
        meter, append = await Meter.of(served), served.runtime.store.append
        failures = [StoreUnavailable("the disk is full"), StoreUnavailable("the disk is full"), ValueError("ours")]

        async def failing(batch: Sequence[Append]) -> None:
            if failures:
                raise failures.pop(0)
            await append(batch)

        monkeypatch.setattr(served.runtime.store, "append", failing)
        found = await collect(served.ask("go", format="records"))
        assert await meter.changed("limelight_store_errors_total", "limelight_events_total") == {
            "limelight_store_errors_total{code=store_unavailable,during=commit}": 2,
            "limelight_store_errors_total{code=internal,during=commit}": 1,
            "limelight_events_total": len(found),
        }


async def test_a_run_that_is_anothers_by_now_is_no_failure_of_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(agents.patient, data=tmp_path) as served:
        meter = await Meter.of(served)

        tried: list[int] = []

        async def lost(batch: Sequence[Append]) -> None:
            tried.append(len(batch))
            raise LeaseLost()

        monkeypatch.setattr(served.runtime.store, "append", lost)
        asked = asyncio.create_task(served.http.post("/chat", json=asking("go")))
        await eventually(lambda: tried and served.runtime.sessions.count == 0)
        changes = await meter.changed()
        monkeypatch.undo()
        asked.cancel()
        assert changes == {}


async def test_what_the_store_cannot_do_for_a_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(agents.echo, data=tmp_path) as served, socket(served, agent_type="echo") as watching:
        await watching.hear()
        meter = await Meter.of(served)

        async def broken(*_: Any) -> None:
            raise StoreUnavailable("the disk is gone")

        monkeypatch.setattr(served.runtime.store, "session", broken)
        assert (await served.problem("GET", "/sessions/s"))["code"] == "store_unavailable"
        await watching.say("get_state")
        assert (await watching.error())[1] == "store_unavailable"
        series = "limelight_store_errors_total{code=store_unavailable,during=request}"
        assert await meter.changed() == {series: 2}


async def test_a_stream_that_the_store_breaks_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(agents.echo, data=tmp_path) as served:
        run_id = (await served.http.post("/chat", json=asking("hi"))).json()["run_id"]
        meter = await Meter.of(served)

        async def broken(*_: Any, **__: Any) -> None:
            raise StoreUnavailable("the disk is gone")

        monkeypatch.setattr(served.runtime.store, "records", broken)
        cut = await served.http.get(f"/runs/{run_id}/stream?after=0")
        assert (cut.status_code, "done" in cut.text) == (200, False)  # so whoever reads comes again
        monkeypatch.undo()
        series = "limelight_store_errors_total{code=store_unavailable,during=request}"
        assert await meter.changed() == {series: 1}
    assert not caplog.records


# Who may read it, and what it does not say


async def test_it_needs_the_scope_admin(house: House) -> None:
    assert (await house.served.http.get("/metrics")).status_code == 200  # without keys, for this machine
    use, admin = house.headers("ann"), house.headers("prometheus", "admin")
    assert (await house.served.http.get("/metrics")).status_code == 401
    assert (await house.served.problem("GET", "/metrics", headers=use))["code"] == "forbidden"
    reply = await house.served.http.get("/metrics", headers=admin)
    assert (reply.status_code, reply.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")


async def test_nothing_in_it_is_of_a_callers_choice(house: House) -> None:
    ann = house.headers("ann_the_secret_user")
    body = asking("a secret question", session_id="secret_session", request_id="secret_request", agent="echo")
    reply = await house.served.http.post("/chat", json=body, headers=ann)
    wrong = asking("hi", agent="secret_agent", session_id="secret_session")
    assert (await house.served.http.post("/chat", json=wrong, headers=ann)).status_code == 404
    text = (await house.served.http.get("/metrics", headers=house.headers("root", "admin"))).text
    assert "secret" not in text
    assert reply.json()["run_id"] not in text
    for family in text_string_to_metric_families(text):
        of_form = {"le"} if family.type == "histogram" else set[str]()
        for sample in family.samples:
            assert family.name.startswith(("limelight_", "process_"))
            assert set(sample.labels) - of_form == LABELS.get(family.name, set()), family.name


async def test_names_are_as_prometheus_wants_them(house: House) -> None:
    families = list(text_string_to_metric_families((await house.served.http.get("/metrics")).text))
    for family in families:
        assert family.documentation, family.name
        for sample in family.samples:
            assert sample.name.endswith("_total") == (family.type == "counter"), sample.name
        if family.type == "histogram":
            assert family.name.endswith("_seconds")
    assert {"process_cpu_seconds", "process_resident_memory_bytes", "process_open_fds"} <= {f.name for f in families}


async def test_each_server_has_numbers_of_its_own(tmp_path: Path) -> None:
    async with (
        serving(agents.echo, data=tmp_path / "one") as one,
        serving(agents.echo, data=tmp_path / "two") as two,
    ):
        meters = [await Meter.of(one), await Meter.of(two)]
        await collect(one.ask("go"))
        assert [bool(await meter.changed()) for meter in meters] == [True, False]


def test_what_a_limit_is() -> None:
    by_status = {error.code for error in all_errors() if error.status in (408, 413, 429)}
    limits = {error.code for error in all_errors() if error.is_limit}
    assert by_status | {"queue_full", "session_full", "log_full", "run_timeout", "silence_timeout"} == limits


class Commits:
    """Counts what the store of a server is given."""

    def __init__(self, served: Served) -> None:
        self.count = self.records = 0
        self._append = served.runtime.store.append
        served.runtime.store.append = self._counted

    async def _counted(self, batch: Sequence[Append]) -> None:
        await self._append(batch)
        self.count += 1
        self.records += sum(len(append.records) for append in batch)
