"""Downloads of large values: the same bytes as those of small values, sent as fast as the client reads."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from limelight.errors import StoreUnavailable
from limelight.events import AnyEvent, FinalAnswer, ToolFinished, ToolStarted
from limelight.messages import Message
from limelight.models import Run
from limelight.runs import queries
from limelight.server import downloads
from limelight.sources.base import Context, FileMade
from tests.server.raw_connection import Wire, connected
from tests.support.server import Served, collect, serving
from tests.support.wait import eventually

TEXT = 'ä "quoted" \\ line\n\u2028 \x07 𝄞 ' * 20_000
ROWS = [{"name": "ö" * 20, "values": [1, 2.5, None, True]}] * 10_000
FILE = bytes(range(256)) * 4096


async def maker(messages: list[Message], ctx: Context) -> AsyncIterator[AnyEvent | FileMade]:
    """Make large values of all kinds."""
    yield ToolStarted(call_id="text", name="dump", args={"rows": ROWS})
    yield ToolFinished(call_id="text", result=TEXT)
    yield ToolStarted(call_id="rows", name="dump", args={"small": 1})
    yield ToolFinished(call_id="rows", result=ROWS)
    yield ToolStarted(call_id="args", name="dump", args={"text": TEXT})
    yield ToolFinished(call_id="args", result="small")
    yield FileMade(name="large ä.bin", data=FILE, media_type="image/png")
    yield FileMade(name="empty.txt", data=b"", media_type="text/plain")
    yield FinalAnswer(content=TEXT * 10)


async def approver(messages: list[Message], ctx: Context) -> AsyncIterator[str]:
    await ctx.approve("publish", {"rows": ROWS})
    yield "published"


async def made(served: Served, agent: str = "maker", text: str = "go") -> tuple[str, list[str]]:
    """Run an agent. Return the paths of the run and of the files."""
    events = [f.data["event"] async for f in served.ask(text, agent=agent, session_id="s", format="records")]
    run_id = (await served.http.get("/sessions/s")).json()["run_id"]
    return f"/runs/{run_id}", [f"/artifacts/{e['artifact_id']}" for e in events if e["kind"] == "artifact_made"]


def content_of(response: Any) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Everything that a client sees of a response, except for its date."""
    headers = [(name, value) for name, value in response.headers.raw if name.lower() != b"date"]
    return response.status_code, headers, response.content


@pytest.mark.parametrize("kept", [50_000_000, 400_001, 300_001, 100_003])
@pytest.mark.parametrize("store", ["sqlite", "memory://"])
async def test_large_values_have_the_same_responses_in_parts_and_at_once(
    tmp_path: Path, store: str, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also values that were cut off in the store, inside of a character."""
    async with serving(maker, data=tmp_path, store__url=store, limits__result_bytes=kept) as served:
        run, files = await made(served, text=TEXT)
        tools = [f"{run}/tools/{call_id}{raw}" for call_id in ("text", "rows", "args") for raw in ("", "?raw=1")]
        paths = [*tools, f"{run}/input", f"{run}/answer", f"{run}/answer?text=1", *files]
        sizes: list[int] = []
        for method in ("GET", "HEAD"):
            in_parts = [content_of(await served.http.request(method, path)) for path in paths]
            with monkeypatch.context() as patch:
                patch.setattr(queries, "LARGE_VALUE", 10**9)
                patch.setattr(downloads, "PART_BYTES", 10**9)
                at_once = [content_of(await served.http.request(method, path)) for path in paths]
            for path, found, expected in zip(paths, in_parts, at_once, strict=True):
                assert found == expected, path
                assert found[0] == 200 and dict(found[1])[b"content-length"], path
                sizes.append(len(found[2]))
        assert max(sizes) > 100_000 and set(sizes[len(paths) :]) == {0}


async def test_large_values_are_complete(tmp_path: Path) -> None:
    async with serving(maker, data=tmp_path) as served:
        run, files = await made(served, text=TEXT)
        assert (await served.http.get(f"{run}/tools/text?raw=1")).text == TEXT
        tool = (await served.http.get(f"{run}/tools/text")).json()
        assert (tool["result"], tool["args"], tool["size"]) == (TEXT, {"rows": ROWS}, len(TEXT.encode()))
        assert (await served.http.get(f"{run}/tools/rows?raw=1")).content == msgspec.json.encode(ROWS)
        tool = (await served.http.get(f"{run}/tools/rows")).json()
        assert (tool["result"], tool["media_type"]) == (ROWS, "application/json")
        assert (await served.http.get(f"{run}/tools/args")).json()["args"] == {"text": TEXT}
        assert (await served.http.get(f"{run}/input")).text == TEXT
        assert (await served.http.get(f"{run}/answer")).text == TEXT * 10
        assert (await served.http.get(f"{run}/answer?text=1")).text == TEXT * 10
        assert [(await served.http.get(file)).content for file in files] == [FILE, b""]


async def test_large_arguments_of_an_approval_are_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(approver, data=tmp_path) as served:
        frames = served.ask("go", session_id="s", format="records")
        last = (await collect(frames, until=lambda f: f.data["event"]["kind"] == "approval_requested"))[-1]
        url = last.data["event"]["result_url"]
        edited = {"text": TEXT}
        assert (await served.http.get(url)).json()["args"] == {"rows": ROWS}
        await served.http.post(url, json={"decision": "edit", "args": edited})
        await collect(frames, until=lambda f: f.data["event"]["kind"] == "approval_resolved")
        in_parts = await served.http.get(url)
        assert (in_parts.json()["edited_args"], in_parts.json()["truncated"]) == (edited, False)
        monkeypatch.setattr(queries, "LARGE_VALUE", 10**9)
        assert content_of(in_parts) == content_of(await served.http.get(url))


# Clients that read slowly, or not at all


async def request(wire: Wire, path: str) -> dict[str, str]:
    """Send a request, and read the headers of its response, and no more than a part of its body."""
    wire.writer.write(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode())
    assert (await wire.reader.readline()).split()[1] == b"200"
    headers: dict[str, str] = {}
    while (line := await wire.reader.readline()) != b"\r\n":
        name, _, value = line.decode().strip().partition(": ")
        headers[name.lower()] = value
    return headers


class Reads:
    """Counts the parts that are read from the store, and lets none through while `gate` is closed."""

    def __init__(self, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
        self.parts = 0
        self.gate = asyncio.Event()
        self.is_waiting = False
        self.allowed = 1
        self.error: Exception | None = None
        self._read = served.runtime.store.result_part
        monkeypatch.setattr(served.runtime.store, "result_part", self._result_part)

    async def _result_part(self, run: Run, *args: Any) -> bytes | None:
        if self.parts >= self.allowed:
            self.is_waiting = True
            await self.gate.wait()
        self.parts += 1
        if self.error is not None and self.parts > self.allowed:
            raise self.error
        return await self._read(run, *args)


async def huge(messages: list[Message], ctx: Context) -> AsyncIterator[AnyEvent]:
    """Make a result that is larger than the socket buffers of a connection."""
    yield ToolStarted(call_id="c", name="dump", args={})
    yield ToolFinished(call_id="c", result="x" * 40_000_000)
    yield FinalAnswer(content="Done.")


@pytest.mark.requirement("downloads-in-parts")
async def test_value_is_read_as_fast_as_the_client_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(huge, data=tmp_path) as served:
        run, _ = await made(served, "huge")
        reads = Reads(served, monkeypatch)
        reads.gate.set()
        total = 40_000_000 // downloads.PART_BYTES
        async with connected(served) as wire:
            headers = await request(wire, f"{run}/tools/c?raw=1")
            flow = wire.server_side.flow
            assert flow is not None
            await eventually(lambda: flow.write_paused)
            held = wire.server_side.transport.get_write_buffer_size()
            assert held <= 2 * downloads.SEND_BYTES and reads.parts < total
            rest = await wire.reader.readexactly(int(headers["content-length"]))
            assert rest.count(b"x") == 40_000_000 and reads.parts == total + 1


@pytest.mark.requirement("downloads-in-parts")
@pytest.mark.parametrize("query", ["?raw=1", ""])
async def test_download_of_a_deleted_value_is_broken_off(
    tmp_path: Path, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(maker, data=tmp_path) as served:
        run, _ = await made(served)
        reads = Reads(served, monkeypatch)
        parts = len(TEXT.encode()) // downloads.PART_BYTES + 1
        args_parts = len(msgspec.json.encode({"rows": ROWS})) // downloads.PART_BYTES + 1
        reads.allowed = 1 if query else parts + args_parts + 1  # the size of a text in JSON is read first
        async with connected(served) as wire:
            headers = await request(wire, f"{run}/tools/text{query}")
            await served.http.delete("/sessions/s")
            reads.gate.set()
            body = await wire.rest()
            assert 0 < len(body) < int(headers["content-length"])
        assert (await served.problem("GET", f"{run}/tools/text{query}"))["code"] == "run_not_found"


async def test_download_is_broken_off_if_the_store_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(maker, data=tmp_path) as served:
        run, _ = await made(served)
        reads = Reads(served, monkeypatch)
        reads.error = StoreUnavailable("the disk is gone")
        reads.gate.set()
        async with connected(served) as wire:
            headers = await request(wire, f"{run}/tools/text?raw=1")
            assert len(await wire.rest()) < int(headers["content-length"])


async def test_value_that_is_deleted_before_the_response_begins_is_404(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(maker, data=tmp_path) as served:
        run, _ = await made(served)

        async def nothing(*_: object) -> None:
            return None

        monkeypatch.setattr(served.runtime.store, "result_part", nothing)
        assert (await served.problem("GET", f"{run}/tools/text"))["code"] == "not_found"


async def test_client_that_disconnects_ends_the_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(huge, data=tmp_path) as served:
        run, _ = await made(served, "huge")
        reads = Reads(served, monkeypatch)
        async with connected(served) as wire:
            await request(wire, f"{run}/tools/c?raw=1")
            await wire.reader.readexactly(downloads.PART_BYTES)
            await eventually(lambda: reads.is_waiting)
            end = wire.server_side
        await eventually(end.transport.is_closing)
        reads.gate.set()
        await eventually(lambda: reads.parts == 2)  # the read that had begun
        await asyncio.gather(*(served.http.get("/health") for _ in range(5)))
        assert reads.parts == 2
