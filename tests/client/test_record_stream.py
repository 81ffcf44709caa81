"""Record streams over connections that are cut: each Record once, in order, to the end."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from limelight.client import Client, ClientError, ConnectionLost, Gap, Limited, NotFound, Unauthorized
from limelight.events import Record, RunFinished, RunStarted, Status, kind_of
from tests.client.agents import burst, steady
from tests.client.cutting_proxy import (
    assert_complete,
    collect_records,
    cutting_proxy,
    frame,
    response,
    scripted_responses,
)
from tests.support.server import serving
from tests.system.processes.server_process import free_port

CUTS = 20
START = Record(1, "r", 0, RunStarted(agent="a", input="x"))
MIDDLE = [Record(seq, "r", 0, Status(text=str(seq))) for seq in (2, 3)]
END = Record(4, "r", 0, RunFinished())
WHOLE = [START, *MIDDLE, END]
BAD_GATEWAY = response("<html>", "502 Bad Gateway", "text/html")


@pytest.mark.requirement("client-complete")
@pytest.mark.parametrize(("agent", "seed"), [(steady, 0), (burst, 0), (burst, 1)])
async def test_started_run_is_complete_over_many_cuts(tmp_path: Path, agent: Any, seed: int) -> None:
    async with serving(agent, data=tmp_path / "data") as served, Client(served.url) as straight:
        async with cutting_proxy(served.url, CUTS, (agent.__name__, seed)) as proxy, Client(proxy.url) as client:
            run = await client.start("go", session_id="s")
            received = [record async for record in run]
            assert proxy.cuts_left < CUTS
            while proxy.cuts_left:
                assert_complete(await collect_records(client.follow(run.run_id)), received)
        assert kind_of(received[-1].event) == "run_finished"
        assert len(received) > 100
        assert_complete(received, [record async for record in straight.export(run.run_id)])
        assert [session.turns async for session in straight.sessions()] == [1]


@pytest.mark.parametrize("agent", [steady, burst])
async def test_watch_is_complete_through_several_runs_over_many_cuts(tmp_path: Path, agent: Any) -> None:
    async with serving(agent, data=tmp_path / "data") as served, Client(served.url) as straight:
        async with cutting_proxy(served.url, CUTS, agent.__name__) as proxy, Client(proxy.url) as client:
            run, ends, received = await straight.start("go", session_id="s"), 0, list[Record]()
            watching = client.watch("s")
            async for item in watching:
                assert isinstance(item, Record)
                received.append(item)
                if isinstance(item.event, RunFinished):
                    ends += 1
                    if ends == 3:
                        break
                    run = await straight.start("go on", session_id="s")
            await watching.aclose()
            await run.wait()
            assert proxy.cuts_left == 0
        assert [kind_of(r.event) for r in received].count("run_started") == 3
        expected: list[Record] = []
        rereading = straight.watch("s")
        async for item in rereading:
            assert isinstance(item, Record)
            expected.append(item)
            if item.seq == received[-1].seq:
                break
        await rereading.aclose()
        assert_complete(received, expected)


async def test_stream_resumes_after_the_last_complete_record() -> None:
    half = frame(MIDDLE[1])[:-20]
    first = response("retry: 1000\n\n" + frame(START) + frame(MIDDLE[0]) + half)
    async with (
        scripted_responses(first, response(frame(MIDDLE[1]) + frame(END))) as server,
        Client(server.url) as client,
    ):
        assert await collect_records(client.follow("r")) == WHOLE
    assert [head.partition("last-event-id: ")[2].partition("\r")[0] for head in server.requests] == ["0", "2"]
    assert "GET /runs/r/stream?format=records" in server.requests[0]


async def test_stream_drops_repeated_records_and_keeps_order() -> None:
    stale = "".join(frame(record) for record in (*WHOLE[:3], *WHOLE[:3]))
    async with (
        scripted_responses(response(stale), response(stale + frame(END))) as server,
        Client(server.url) as client,
    ):
        assert await collect_records(client.follow("r")) == WHOLE


async def test_stream_retries_after_errors_of_a_proxy() -> None:
    whole = response("".join(map(frame, WHOLE)))
    async with (
        scripted_responses(BAD_GATEWAY, BAD_GATEWAY, b"", b"HTTP/1.1 2", whole) as server,
        Client(server.url) as client,
    ):
        assert await collect_records(client.follow("r")) == WHOLE
        assert len(server.requests) == 5


async def test_stream_retries_a_limit_only_after_it_was_connected() -> None:
    """After a cut the server may still count the connection that is gone."""
    refused = '{"code": "too_many_streams", "detail": "close some", "retry_after": 0}'
    full = response(refused, "429 Too Many Requests", "application/problem+json")
    rest = response("".join(map(frame, WHOLE[1:])))
    async with (
        scripted_responses(full, response(frame(START)), full, full, rest) as server,
        Client(server.url) as client,
    ):
        with pytest.raises(Limited):
            await anext(client.follow("r"))
        assert await collect_records(client.follow("r")) == WHOLE
        assert len(server.requests) == 5


async def test_stream_reconnects_after_silence() -> None:
    quiet = response(frame(START))
    async with (
        scripted_responses(lambda writer: writer.write(quiet), response("".join(map(frame, WHOLE[1:])))) as server,
        Client(server.url, timeout=0.2) as client,
    ):
        assert await collect_records(client.follow("r")) == WHOLE
        assert len(server.requests) == 2


async def test_stream_with_heartbeats_is_not_cut() -> None:
    def beat(writer: asyncio.StreamWriter) -> None:
        """Send heartbeats for three times the timeout."""
        writer.write(response(frame(START)))
        loop = asyncio.get_running_loop()
        for n in range(1, 30):
            loop.call_later(n * 0.02, writer.write, b": ping\n\n")
        loop.call_later(0.6, writer.write, "".join(map(frame, WHOLE[1:])).encode())

    async with scripted_responses(beat) as server, Client(server.url, timeout=0.2) as client:
        assert await collect_records(client.follow("r")) == WHOLE
        assert len(server.requests) == 1


async def test_stream_ends_at_204() -> None:
    async with scripted_responses(b"HTTP/1.1 204 No Content\r\n\r\n") as server, Client(server.url) as client:
        assert await collect_records(client.follow("r", after=4)) == []


@pytest.mark.requirement("client-gap")
async def test_stream_yields_a_gap_once_and_export_raises() -> None:
    gap = 'id: 3\ndata: {"gap":{"from":1,"to":3}}\n\n'
    async with scripted_responses(response(gap), response(gap + frame(END))) as server, Client(server.url) as client:
        assert [item async for item in client.follow("r")] == [Gap(1, 3), END]
        assert "last-event-id: 3" in server.requests[1]
        with pytest.raises(ClientError, match="Records 1 to 3 are no longer kept") as raised:
            _ = [record async for record in client.export("r")]
        assert raised.value.code == "gap"


async def test_stream_gives_up_after_its_time_limit() -> None:
    async with Client(f"http://127.0.0.1:{free_port()}", give_up_seconds=0.1) as client:
        for stream in (client.follow("r"), client.watch("s"), client.export("r")):
            with pytest.raises(ConnectionLost, match=r"gave up after 0\.1 s"):
                _ = [item async for item in stream]
        with pytest.raises(ConnectionLost, match="does not answer"):
            await client.start("x")
        with pytest.raises(ConnectionLost, match="does not answer"):
            await client.agents()
    async with (
        scripted_responses(response(frame(START)), BAD_GATEWAY) as server,
        Client(server.url, give_up_seconds=0.1) as client,
    ):
        stream = client.follow("r")
        assert await anext(stream) == START
        with pytest.raises(ConnectionLost, match="HTTP 502"):
            await anext(stream)


@pytest.mark.parametrize(
    ("status", "error"),
    [("401 No", Unauthorized), ("403 No", Unauthorized), ("404 No", NotFound), ("400 No", ClientError)],
)
async def test_stream_raises_client_errors_at_once(status: str, error: type[Exception]) -> None:
    refused = response('{"detail": "no", "code": "c"}', status, "application/problem+json")
    async with scripted_responses(response(frame(START)), refused) as server, Client(server.url) as client:
        stream = client.follow("r")
        assert await anext(stream) == START
        with pytest.raises(error, match="no"):
            await anext(stream)
        assert len(server.requests) == 2


async def test_client_reports_a_server_that_is_not_limelight() -> None:
    page = response("<html>hello</html>", content_type="text/html")
    async with scripted_responses(page) as server, Client(server.url) as client:
        for attempt in (anext(client.follow("r")), client.start("x"), client.agents()):
            with pytest.raises(ClientError, match="does not seem to be a Limelight server") as raised:
                await attempt
            assert raised.value.code == "not_limelight"


async def test_stream_ignores_new_fields_and_raises_for_new_events() -> None:
    newer = frame(START).replace('"agent":"a"', '"agent":"a","mood":"good"')
    unknown = frame(END).replace("run_finished", "run_exploded")
    async with scripted_responses(response(newer + unknown)) as server, Client(server.url) as client:
        stream = client.follow("r")
        assert await anext(stream) == START
        with pytest.raises(ClientError, match="is the client older"):
            await anext(stream)


@pytest.mark.requirement("client-start-once")
async def test_start_repeats_its_request_after_a_cut() -> None:
    head = response("".join(map(frame, WHOLE))).replace(b"\r\n\r\n", b"\r\nx-run-id: r\r\nx-session-id: s\r\n\r\n", 1)
    async with scripted_responses(b"", b"HTTP/1.1 200", BAD_GATEWAY, head) as server, Client(server.url) as client:
        run = await client.start("x")
        assert (run.run_id, run.session_id) == ("r", "s")
        assert [record async for record in run] == WHOLE
        assert len(server.requests) == 4
        assert all(head.startswith("POST /chat/stream?format=records") for head in server.requests)


async def test_started_run_takes_the_run_id_of_its_records() -> None:
    head = response(frame(START)).replace(b"\r\n\r\n", b"\r\nx-run-id: placeholder\r\n\r\n", 1)
    async with scripted_responses(head, response("".join(map(frame, WHOLE)))) as server, Client(server.url) as client:
        run = await client.start("x", session_id="s")
        assert (run.run_id, run.session_id) == ("placeholder", "s")
        assert [record async for record in run] == WHOLE
        assert run.run_id == "r"
        assert server.requests[1].startswith("GET /runs/r/stream")
