"""Streams through the proxies: event by event, resumed, stopped, and alive in a silence."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from tests.support.server import asking


class Line(NamedTuple):
    """A frame of a stream, or a sign of life, which has no data."""

    id: str
    data: Any


def lines(response: httpx.Response) -> Iterator[Line]:
    block: dict[str, str] = {}
    for line in response.iter_lines():
        name, _, value = line.partition(": ")
        if line.startswith(":"):
            yield Line("", None)
        elif line:
            block[name] = value
        else:
            if "data" in block:
                yield Line(block.get("id", ""), json.loads(block["data"]))
            block = {}


def token(line: Line) -> str:
    return line.data["data"]["content"] if line.data and line.data["type"] == "token" else ""


def until(stream: Iterator[Line], found: Callable[[Line], object]) -> list[Line]:
    """All up to the first that fits; a stream that ends before is a failure."""
    seen: list[Line] = []
    for line in stream:
        seen.append(line)
        if found(line):
            return seen
    raise AssertionError(f"the stream ended: {seen}")


@pytest.fixture
def gate(gates: Path, request: pytest.FixtureRequest) -> Path:
    """A file for which the agent of one test waits."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    return gates / name


@pytest.mark.requirement("streams-behind-proxies")
def test_events_are_not_buffered(http: httpx.Client, gate: Path) -> None:
    """The agent sends the second event when the first has arrived: a proxy that buffers would wait forever."""
    with http.stream("POST", "/chat/stream", json=asking(f"wait for {gate.name}")) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        assert "content-encoding" not in response.headers
        stream = lines(response)
        until(stream, lambda line: token(line) == "one ")
        gate.touch()
        until(stream, lambda line: token(line) == "two")
        until(stream, lambda line: line.data == {"type": "done"})


@pytest.mark.requirement("streams-behind-proxies")
@pytest.mark.parametrize("site", ["impatient nginx, alone", "impatient nginx, below", "caddy, below"], indirect=True)
def test_heartbeats_keep_a_silent_stream_open(http: httpx.Client, gate: Path) -> None:
    """The silence is longer than the read time-out of this nginx."""
    with http.stream("POST", "/chat/stream", json=asking(f"wait for {gate.name}")) as response:
        stream = lines(response)
        until(stream, lambda line: token(line) == "one ")
        for _ in range(12):
            until(stream, lambda line: line.data is None)
        gate.touch()
        until(stream, lambda line: token(line) == "two")


@pytest.mark.requirement("streams-behind-proxies")
def test_cut_stream_resumes_after_its_last_event(http: httpx.Client, gate: Path) -> None:
    with http.stream("POST", "/chat/stream", json=asking(f"wait for {gate.name}")) as response:
        run_id = response.headers["x-run-id"]
        seen = until(lines(response), lambda line: token(line) == "one ")
    gate.touch()
    with http.stream("GET", f"/runs/{run_id}/stream", headers={"last-event-id": seen[-1].id}) as response:
        rest = until(lines(response), lambda line: line.data == {"type": "done"})
    assert "".join(map(token, seen)) == "one "
    assert "".join(map(token, rest)) == "two"


def test_stop_ends_a_run_and_its_stream(http: httpx.Client, gate: Path) -> None:
    with http.stream("POST", "/chat/stream", json=asking(f"wait for {gate.name}")) as response:
        run_id = response.headers["x-run-id"]
        stream = lines(response)
        until(stream, lambda line: token(line) == "one ")
        stopped = http.post(f"/runs/{run_id}/cancel")
        assert stopped.status_code == 200, stopped.text
        rest = [line for line in stream if line.data]
    assert rest[-1].data == {"type": "done"}
    assert http.get(f"/runs/{run_id}").json()["state"] == "cancelled"
