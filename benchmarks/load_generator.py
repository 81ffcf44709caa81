"""The load generator: opens streams, reads them to their end and checks that all events have arrived.

It runs in a separate process (`python -m benchmarks.load_generator`), so that its CPU time is not counted. It reads
jobs as JSON lines and answers each with a result. A job with two stages first answers that it is ready, and continues
at the next line.
"""

import asyncio
import re
import sys
import time

import msgspec
import uvloop
from websockets.asyncio.client import ClientConnection, connect

from benchmarks.http_stream import FRAME, STREAM_SECONDS, IncompleteStream, Stream, chat_body, open_stream
from benchmarks.load_process import Job, JobResult
from benchmarks.workload import IDLE_TOKENS, TOKEN

_RUN_ID = re.compile(rb"x-run-id: (\S+)")
_SESSION_ID = re.compile(rb"x-session-id: (\S+)")
_APPROVAL_ID = re.compile(rb'"approval_id":"([^"]+)"')


async def start_run(job: Job) -> Stream:
    """Start a run of the job's agent."""
    return await open_stream(job.port, "POST", job.path, chat_body(job.mode, "go"), job.key)


async def read_streams(job: Job) -> JobResult:
    """Read `job.streams` streams at a time, each `job.runs` times."""
    result = JobResult()

    async def read_one_after_another() -> None:
        for _ in range(job.runs):
            stream = await start_run(job)
            frames = await stream.read_workload(job.tokens)
            result.frames += frames  # after the await, because several streams add to this number
            result.latencies.append(stream.first_frame_at - stream.sent_at)
            result.durations.append(stream.closed_at - stream.sent_at)

    await asyncio.gather(*(read_one_after_another() for _ in range(job.streams)))
    return result


async def read_reply(job: Job) -> JobResult:
    """Read one response, and check only that all tokens have arrived."""
    stream = await start_run(job)
    await stream.read_tokens(job.tokens)
    return JobResult(frames=stream.body.count(FRAME))


class WaitingRun:
    """A run of Limelight that waits for an approval, which is given when all its viewers are connected."""

    def __init__(self, job: Job, stream: Stream) -> None:
        self._port = job.port
        self.stream = stream
        self.run_id, self.session_id, self._approval_id = (
            self._header(pattern) for pattern in (_RUN_ID, _SESSION_ID, _APPROVAL_ID)
        )

    @classmethod
    async def start(cls, job: Job) -> "WaitingRun":
        stream = await start_run(job)
        await stream.wait_for(b'"approval"')
        return cls(job, stream)

    def _header(self, pattern: re.Pattern[bytes]) -> str:
        found = pattern.search(self.stream.body)
        if found is None:
            raise IncompleteStream(f"the stream has no {pattern.pattern!r}")
        return found[1].decode()

    async def approve(self) -> None:
        path = f"/runs/{self.run_id}/approvals/{self._approval_id}"
        await open_stream(self._port, "POST", path, {"decision": "approve"})


async def read_as_viewers(job: Job, lines: "asyncio.Queue[bytes]") -> JobResult:
    """Read one run with several viewers. The run starts when all of them are connected."""
    run = await WaitingRun.start(job)
    others = [open_stream(job.port, "GET", f"/runs/{run.run_id}/stream") for _ in range(job.streams - 1)]
    viewers = [run.stream, *await asyncio.gather(*others)]
    await asyncio.gather(*(stream.wait_for(b'"approval"') for stream in viewers))
    write_result(JobResult(ready=True))
    await lines.get()
    await run.approve()
    return JobResult(frames=sum(await asyncio.gather(*(stream.read_workload(job.tokens) for stream in viewers))))


async def read_as_sockets(job: Job, lines: "asyncio.Queue[bytes]") -> JobResult:
    """Read the session of one run with several WebSockets; the run starts when all of them are connected."""
    run = await WaitingRun.start(job)
    url = f"ws://127.0.0.1:{job.port}/api/v2/ws/{run.session_id}?agent_type={job.mode}"
    sockets = await asyncio.gather(*(connect(url, proxy=None, max_size=None) for _ in range(job.streams)))
    await asyncio.gather(*(_read_until(socket, '"approval_request"') for socket in sockets))
    write_result(JobResult(ready=True))
    await lines.get()
    await run.approve()
    frames = sum(await asyncio.gather(*(_read_until(socket, '"state":"completed"') for socket in sockets)))
    for socket in sockets:
        socket.transport.abort()
    return JobResult(frames=frames)


async def _read_until(socket: ClientConnection, text: str) -> int:
    """Read a socket up to the message that contains this text. Returns the number of messages before it."""
    count = 0
    async with asyncio.timeout(STREAM_SECONDS):
        while text not in str(await socket.recv()):
            count += 1
    return count


async def keep_idle_streams(job: Job, lines: "asyncio.Queue[bytes]") -> JobResult:
    """Open streams that send some events and then none. Aborts them at the next line of standard input."""
    streams = await asyncio.gather(*(start_run(job) for _ in range(job.streams)))
    deadline = time.monotonic() + STREAM_SECONDS
    while any(stream.body.count(TOKEN.encode()) < IDLE_TOKENS for stream in streams):
        if time.monotonic() > deadline:
            raise IncompleteStream("the streams do not become idle")
        await asyncio.sleep(0.02)
    write_result(JobResult(ready=True))
    await lines.get()
    for stream in streams:
        stream.transport.abort()
    return JobResult(frames=sum(stream.body.count(FRAME) for stream in streams))


def write_result(result: JobResult) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(result) + b"\n")
    sys.stdout.buffer.flush()


async def run_job(job: Job, lines: "asyncio.Queue[bytes]") -> JobResult:
    match job.kind:
        case "streams":
            return await read_streams(job)
        case "reply":
            return await read_reply(job)
        case "viewers":
            return await read_as_viewers(job, lines)
        case "sockets":
            return await read_as_sockets(job, lines)
        case "idle":
            return await keep_idle_streams(job, lines)


async def main() -> None:
    """Execute jobs until standard input ends."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue()

    def read_line() -> None:
        line = sys.stdin.buffer.readline()
        lines.put_nowait(line)
        if not line:
            loop.remove_reader(sys.stdin)

    loop.add_reader(sys.stdin, read_line)
    while line := await lines.get():
        try:
            write_result(await run_job(msgspec.json.decode(line, type=Job), lines))
        except (IncompleteStream, OSError, TimeoutError, ValueError) as error:
            write_result(JobResult(error=f"{type(error).__name__}: {error}"))


if __name__ == "__main__":
    uvloop.run(main())
