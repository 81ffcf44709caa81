"""The load: opens streams, reads them to their end and checks that every event has come.

A process of its own (`python -m benchmarks.load`), so that its CPU does not count. It reads jobs as JSON lines and
answers each with one; a job with two stages says that it is ready and goes on at the next line.
"""

import asyncio
import re
import sys
import time

import msgspec
import uvloop
from websockets.asyncio.client import ClientConnection, connect

from benchmarks.client import Job, Outcome
from benchmarks.stream import FRAME, STREAM_SECONDS, Incomplete, Stream, open_stream
from benchmarks.workload import IDLE_TOKENS, TOKEN

_RUN_ID = re.compile(rb"x-run-id: (\S+)")
_SESSION_ID = re.compile(rb"x-session-id: (\S+)")
_APPROVAL_ID = re.compile(rb'"approval_id":"([^"]+)"')


def ask(job: Job) -> "asyncio.Future[Stream]":
    """Begin one stream of the job."""
    body = {"agent": job.mode, "messages": [{"role": "user", "content": "go"}]}
    return asyncio.ensure_future(open_stream(job.port, "POST", job.path, body, job.key))


async def streams(job: Job) -> Outcome:
    """So many runs, so many at a time."""
    outcome = Outcome()

    async def one_after_another(runs: int) -> None:
        for _ in range(runs):
            stream = await ask(job)
            frames = await stream.whole(job.tokens)
            outcome.frames += frames
            outcome.latencies.append(stream.first_at - stream.sent_at)
            outcome.durations.append(stream.over_at - stream.sent_at)

    await asyncio.gather(*(one_after_another(job.runs) for _ in range(job.streams)))
    return outcome


async def reply(job: Job) -> Outcome:
    """One answer, of which only the tokens count."""
    stream = await ask(job)
    await stream.said(job.tokens)
    return Outcome(frames=stream.body.count(FRAME))


async def viewers(job: Job, go: "asyncio.Queue[bytes]") -> Outcome:
    """Several viewers of one run of Limelight, which begins when all of them are there."""
    asker, run_id, approval_id = await ask_and_wait(job)
    opening = [open_stream(job.port, "GET", f"/runs/{run_id}/stream") for _ in range(job.streams - 1)]
    watching = [asker, *await asyncio.gather(*opening)]
    await asyncio.gather(*(stream.until(b'"approval"') for stream in watching))
    say(Outcome(ready=True))
    await go.get()
    await open_stream(job.port, "POST", f"/runs/{run_id}/approvals/{approval_id}", {"decision": "approve"})
    return Outcome(frames=sum(await asyncio.gather(*(stream.whole(job.tokens) for stream in watching))))


async def ask_and_wait(job: Job) -> tuple[Stream, str, str]:
    """Start a run that waits for an approval. Returns its stream, its id and the id of the approval."""
    asker = await ask(job)
    await asker.until(b'"approval"')
    run_id, approval_id = (found[1].decode() for p in (_RUN_ID, _APPROVAL_ID) if (found := p.search(asker.body)))
    return asker, run_id, approval_id


async def sockets(job: Job, go: "asyncio.Queue[bytes]") -> Outcome:
    """Several WebSockets that show the session of one run of Limelight, which begins when all of them are there."""
    asker, run_id, approval_id = await ask_and_wait(job)
    session_id = _SESSION_ID.search(asker.body)
    if session_id is None:
        raise Incomplete("the stream does not name its session")
    url = f"ws://127.0.0.1:{job.port}/api/v2/ws/{session_id[1].decode()}?agent_type={job.mode}"
    opened = await asyncio.gather(*(connect(url, proxy=None, max_size=None) for _ in range(job.streams)))
    await asyncio.gather(*(_read_until(socket, '"approval_request"') for socket in opened))
    say(Outcome(ready=True))
    await go.get()
    await open_stream(job.port, "POST", f"/runs/{run_id}/approvals/{approval_id}", {"decision": "approve"})
    frames = sum(await asyncio.gather(*(_read_until(socket, '"state":"completed"') for socket in opened)))
    for socket in opened:
        socket.transport.abort()
    return Outcome(frames=frames)


async def _read_until(socket: ClientConnection, text: str) -> int:
    """Read a socket up to the message that contains this text. Returns the number of messages."""
    count = 0
    async with asyncio.timeout(STREAM_SECONDS):
        while text not in str(await socket.recv()):
            count += 1
    return count


async def idle(job: Job, go: "asyncio.Queue[bytes]") -> Outcome:
    """Open streams that have said something and then wait, until we are told to leave."""
    waiting = await asyncio.gather(*(ask(job) for _ in range(job.streams)))
    deadline = time.monotonic() + STREAM_SECONDS
    while any(stream.body.count(TOKEN.encode()) < IDLE_TOKENS for stream in waiting):
        if time.monotonic() > deadline:
            raise Incomplete("the streams do not become idle")
        await asyncio.sleep(0.02)
    say(Outcome(ready=True))
    await go.get()
    for stream in waiting:
        stream.transport.abort()
    return Outcome(frames=sum(stream.body.count(FRAME) for stream in waiting))


def say(outcome: Outcome) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(outcome) + b"\n")
    sys.stdout.buffer.flush()


async def main() -> None:
    """Do jobs until nobody sends any more."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue()

    def read() -> None:
        line = sys.stdin.buffer.readline()
        lines.put_nowait(line)
        if not line:
            loop.remove_reader(sys.stdin)

    loop.add_reader(sys.stdin, read)
    while line := await lines.get():
        job = msgspec.json.decode(line, type=Job)
        try:
            match job.kind:
                case "streams":
                    say(await streams(job))
                case "reply":
                    say(await reply(job))
                case "viewers":
                    say(await viewers(job, lines))
                case "sockets":
                    say(await sockets(job, lines))
                case "idle":
                    say(await idle(job, lines))
        except (Incomplete, OSError, TimeoutError, ValueError) as error:
            say(Outcome(error=f"{type(error).__name__}: {error}"))


if __name__ == "__main__":
    uvloop.run(main())
