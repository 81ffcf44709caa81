"""Streams over connections that are cut: every Record once, in order, to the end."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from limelight.client import Client, ClientError, ConnectionLost, Gap, Limited, NotFound, Unauthorized
from limelight.events import Record, RunFinished, RunStarted, Status, TextDelta, kind_of
from tests.client.cutting_proxy import answer, cutting, frame, playing, records, same
from tests.support.server import serving
from tests.system.processes import agents
from tests.system.processes.server_process import free_port

CUTS = 20
START = Record(1, "r", 0, RunStarted(agent="a", input="x"))
MIDDLE = [Record(seq, "r", 0, Status(text=str(seq))) for seq in (2, 3)]
END = Record(4, "r", 0, RunFinished())
WHOLE = [START, *MIDDLE, END]
BAD_GATEWAY = answer("<html>", "502 Bad Gateway", "text/html")


@pytest.mark.parametrize("agent", ["steady", "burst"])
@pytest.mark.parametrize("seed", range(3))
async def test_a_started_run_arrives_whole_over_twenty_cuts(tmp_path: Path, agent: str, seed: int) -> None:
    async with serving(getattr(agents, agent), data=tmp_path / "data") as served, Client(served.url) as straight:
        async with cutting(served.url, CUTS, (agent, seed)) as cutter, Client(cutter.url) as client:
            run = await client.start("go", session_id="s")
            received = [record async for record in run]
            assert cutter.left < CUTS
            while cutter.left:
                assert same(await records(client.follow(run.run_id)), received)
        assert kind_of(received[-1].event) == "run_finished"
        assert len(received) > 100
        assert same(received, [record async for record in straight.export(run.run_id)])
        assert [session.turns async for session in straight.sessions()] == [1]


@pytest.mark.parametrize("agent", ["steady", "burst"])
async def test_a_session_is_watched_through_its_runs_over_twenty_cuts(tmp_path: Path, agent: str) -> None:
    async with serving(getattr(agents, agent), data=tmp_path / "data") as served, Client(served.url) as straight:
        async with cutting(served.url, CUTS, agent) as cutter, Client(cutter.url) as client:
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
            assert cutter.left == 0
        assert [kind_of(r.event) for r in received].count("run_started") == 3
        whole: list[Record] = []
        rereading = straight.watch("s")
        async for item in rereading:
            assert isinstance(item, Record)
            whole.append(item)
            if item.seq == received[-1].seq:
                break
        await rereading.aclose()
        assert same(received, whole)


async def test_it_goes_on_behind_the_last_whole_record() -> None:
    half = frame(MIDDLE[1])[:-20]
    first = answer("retry: 1000\n\n" + frame(START) + frame(MIDDLE[0]) + half)
    async with playing(first, answer(frame(MIDDLE[1]) + frame(END))) as stage, Client(stage.url) as client:
        assert await records(client.follow("r")) == WHOLE
    assert [head.partition("last-event-id: ")[2].partition("\r")[0] for head in stage.requests] == ["0", "2"]
    assert "GET /runs/r/stream?format=records" in stage.requests[0]


async def test_what_comes_twice_is_dropped_and_order_is_kept() -> None:
    stale = "".join(frame(record) for record in (*WHOLE[:3], *WHOLE[:3]))
    async with playing(answer(stale), answer(stale + frame(END))) as stage, Client(stage.url) as client:
        assert await records(client.follow("r")) == WHOLE


async def test_an_answer_from_a_proxy_in_trouble_is_no_end() -> None:
    whole = answer("".join(map(frame, WHOLE)))
    async with playing(BAD_GATEWAY, BAD_GATEWAY, b"", b"HTTP/1.1 2", whole) as stage, Client(stage.url) as client:
        assert await records(client.follow("r")) == WHOLE
        assert len(stage.requests) == 5


async def test_a_stream_that_comes_back_is_patient_with_limits_and_a_new_one_is_not() -> None:
    """After a cut the server may still count the connection that is gone."""
    refused = '{"code": "too_many_streams", "detail": "close some", "retry_after": 5}'
    full = answer(refused, "429 Too Many Requests", "application/problem+json")
    rest = answer("".join(map(frame, WHOLE[1:])))
    async with playing(full, answer(frame(START)), full, full, rest) as stage, Client(stage.url) as client:
        with pytest.raises(Limited):
            await anext(client.follow("r"))
        assert await records(client.follow("r")) == WHOLE
        assert len(stage.requests) == 5


async def test_silence_is_a_cut() -> None:
    quiet = answer(frame(START))
    async with (
        playing(lambda writer: writer.write(quiet), answer("".join(map(frame, WHOLE[1:])))) as stage,
        Client(stage.url, timeout=0.2) as client,
    ):
        assert await records(client.follow("r")) == WHOLE
        assert len(stage.requests) == 2


async def test_heartbeats_are_life() -> None:
    def beat(writer: asyncio.StreamWriter) -> None:
        """For three times as long as silence may be."""
        writer.write(answer(frame(START)))
        loop = asyncio.get_running_loop()
        for n in range(1, 30):
            loop.call_later(n * 0.05, writer.write, b": ping\n\n")
        loop.call_later(1.5, writer.write, "".join(map(frame, WHOLE[1:])).encode())

    async with playing(beat) as stage, Client(stage.url, timeout=0.5) as client:
        assert await records(client.follow("r")) == WHOLE
        assert len(stage.requests) == 1


async def test_nothing_more_to_come_is_an_end() -> None:
    async with playing(b"HTTP/1.1 204 No Content\r\n\r\n") as stage, Client(stage.url) as client:
        assert await records(client.follow("r", after=4)) == []


async def test_a_gap_is_said_and_not_repeated() -> None:
    gap = 'id: 3\ndata: {"gap":{"from":1,"to":3}}\n\n'
    async with playing(answer(gap), answer(gap + frame(END))) as stage, Client(stage.url) as client:
        assert [item async for item in client.follow("r")] == [Gap(1, 3), END]
        assert "last-event-id: 3" in stage.requests[1]
        with pytest.raises(ClientError, match="Records 1 to 3 are no longer kept") as raised:
            _ = [record async for record in client.export("r")]
        assert raised.value.code == "gap"


async def test_it_gives_up_when_nobody_comes_back() -> None:
    async with Client(f"http://127.0.0.1:{free_port()}", give_up_seconds=0.1) as client:
        for stream in (client.follow("r"), client.watch("s"), client.export("r")):
            with pytest.raises(ConnectionLost, match=r"gave up after 0\.1 s"):
                _ = [item async for item in stream]
        with pytest.raises(ConnectionLost, match="does not answer"):
            await client.start("x")
        with pytest.raises(ConnectionLost, match="does not answer"):
            await client.agents()
    async with playing(answer(frame(START)), BAD_GATEWAY) as stage, Client(stage.url, give_up_seconds=0.1) as client:
        stream = client.follow("r")
        assert await anext(stream) == START
        with pytest.raises(ConnectionLost, match="HTTP 502"):
            await anext(stream)


@pytest.mark.parametrize(
    ("status", "error"),
    [("401 No", Unauthorized), ("403 No", Unauthorized), ("404 No", NotFound), ("400 No", ClientError)],
)
async def test_what_trying_again_cannot_mend_is_raised_at_once(status: str, error: type[Exception]) -> None:
    refused = answer('{"detail": "no", "code": "c"}', status, "application/problem+json")
    async with playing(answer(frame(START)), refused) as stage, Client(stage.url) as client:
        stream = client.follow("r")
        assert await anext(stream) == START
        with pytest.raises(error, match="no"):
            await anext(stream)
        assert len(stage.requests) == 2


async def test_what_is_no_limelight_is_told() -> None:
    page = answer("<html>hello</html>", content_type="text/html")
    async with playing(page) as stage, Client(stage.url) as client:
        for attempt in (anext(client.follow("r")), client.start("x"), client.agents()):
            with pytest.raises(ClientError, match="does not seem to be a Limelight server") as raised:
                await attempt
            assert raised.value.code == "not_limelight"


async def test_an_event_of_a_newer_server_is_told_and_new_fields_are_ignored() -> None:
    newer = frame(START).replace('"agent":"a"', '"agent":"a","mood":"good"')
    unknown = frame(END).replace("run_finished", "run_exploded")
    async with playing(answer(newer + unknown)) as stage, Client(stage.url) as client:
        stream = client.follow("r")
        assert await anext(stream) == START
        with pytest.raises(ClientError, match="is the client older"):
            await anext(stream)


async def test_a_start_that_is_cut_is_repeated_under_the_same_names() -> None:
    head = answer("".join(map(frame, WHOLE))).replace(b"\r\n\r\n", b"\r\nx-run-id: r\r\nx-session-id: s\r\n\r\n", 1)
    async with playing(b"", b"HTTP/1.1 200", BAD_GATEWAY, head) as stage, Client(stage.url) as client:
        run = await client.start("x")
        assert (run.run_id, run.session_id) == ("r", "s")
        assert [record async for record in run] == WHOLE
        assert len(stage.requests) == 4
        assert all(head.startswith("POST /chat/stream?format=records") for head in stage.requests)


async def test_a_run_is_followed_under_the_name_in_its_records() -> None:
    head = answer(frame(START)).replace(b"\r\n\r\n", b"\r\nx-run-id: placeholder\r\n\r\n", 1)
    async with playing(head, answer("".join(map(frame, WHOLE)))) as stage, Client(stage.url) as client:
        run = await client.start("x", session_id="s")
        assert (run.run_id, run.session_id) == ("placeholder", "s")
        assert [record async for record in run] == WHOLE
        assert run.run_id == "r"
        assert stage.requests[1].startswith("GET /runs/r/stream")


def test_samples_are_records() -> None:
    delta = Record(1, "r", 0, TextDelta(message_id="m", text="a"))
    assert msgspec.json.decode(frame(delta).partition("data: ")[2], type=Record) == delta
