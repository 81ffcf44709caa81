"""The flood benchmark: bytes of a flood, breaches of limits, the report, and a short measurement."""

import subprocess
import sys

import msgspec

from benchmarks.floods.catalog import FLOODS, PLACEHOLDERS, Body, Flood, Message, Request
from benchmarks.floods.load_generator import Piece, Script
from benchmarks.floods.measured_user import CLIENT, FIRST_EVENT, HEALTH, PING, STOP
from benchmarks.floods.measurement import (
    MAX_MEMORY_MB,
    FloodFigures,
    FloodPlan,
    FloodResults,
    Memory,
    measure_floods,
)
from benchmarks.floods.report import floods_section, floods_table
from benchmarks.floods.server import FloodReport, UserReport
from benchmarks.report import with_section
from benchmarks.server_process import ROOT

FIGURES = FloodFigures(
    flood="sessions",
    has_key=True,
    user=UserReport(
        latencies={FIRST_EVENT: [1, 2, 3], STOP: [4, 5, 6], PING: [1, 1], HEALTH: [7, 8, 9], CLIENT: [0, 5]}
    ),
    client=FloodReport(answers={"200": 1234, "429": 5}, opened=20, closed=3),
    memory=Memory(before=60, peak=70, after=65),
    cpu=0.5,
    waited=0.1,
    load=1.5,
)


def flood(*requests: Request, messages: tuple[Message, ...] = (), **more: int) -> Flood:
    return Flood(
        name="x",
        wire="HTTP",
        what="",
        connections=1,
        requests=requests,
        messages=messages,
        **more,  # pyright: ignore[reportArgumentType]
    )


def test_numbers_in_a_piece_differ_and_do_not_change_its_size() -> None:
    piece = Piece(b"/runs/{number}/x/{number}")
    first, second = piece.next(), piece.next()
    assert len(first) == len(second) == len(b"/runs/{number}/x/{number}")
    assert len({*first.split(b"/"), *second.split(b"/")}) == 7  # four numbers, "runs", "x" and nothing


def test_request_has_the_key_the_values_and_the_size_of_its_body() -> None:
    request = Request("POST", "/runs/{run}/cancel", Body('{"reason":"{padding}"}', "ab", 100))
    script = Script(flood(request), 8000, "secret", {"run": "r1"})
    head, _, body = script.pieces[0].next().partition(b"\r\n\r\n")
    assert head.startswith(b"POST /runs/r1/cancel HTTP/1.1\r\n")
    assert b"authorization: Bearer secret" in head
    assert f"content-length: {len(body)}".encode() in head
    assert 95 < len(msgspec.json.decode(body)["reason"]) + 13 <= 100


def test_half_request_lacks_its_end() -> None:
    script = Script(flood(Request("GET", "/"), unsent=2, interval=1), 8000, "", {})
    assert script.opening.next().endswith(b"application/json\r\n")
    assert script.pieces == []


def test_socket_message_is_a_masked_frame_after_the_handshake() -> None:
    messages = (Message(Body("{padding}", "x", 200)), Message(Body("x"), 9))
    script = Script(flood(Request("GET", "/ws"), messages=messages, interval=1), 8000, "", {})
    assert script.opening.next().startswith(b"GET /ws HTTP/1.1\r\n")
    assert [piece.next() for piece in script.pieces] == [
        b"\x81\xfe\x00\xc8" + bytes(4) + b"x" * 200,
        b"\x89\x81" + bytes(4) + b"x",
    ]


def test_client_without_a_window_writes_large_blocks() -> None:
    script = Script(flood(Request("GET", "/"), window=0), 8000, "", {})
    assert len(script.pieces[0].next()) > 60_000


def test_bodies_of_all_floods_have_no_unknown_placeholder() -> None:
    values = dict.fromkeys(PLACEHOLDERS, "")
    for each in FLOODS.values():
        for request in each.requests:
            left = request.path
            for name in (*values, "number"):
                left = left.replace(f"{{{name}}}", "")
            assert "{" not in left, each.name


def test_limits_that_do_not_hold_are_breaches() -> None:
    assert FIGURES.breaches() == []
    slow = UserReport(latencies={FIRST_EVENT: [1, 3000], STOP: [1, 1500], PING: [1, 1], HEALTH: [1, 300]})
    figures = msgspec.structs.replace(FIGURES, user=slow)
    assert figures.breaches() == ["Stop 1,500 ms", "first event 2,850 ms", "/health 300 ms"]
    assert figures.breaches(time_factor=3) == []
    large = Memory(before=60, peak=MAX_MEMORY_MB + 1, after=160)
    figures = msgspec.structs.replace(FIGURES, memory=large, has_survived=False)
    assert figures.breaches(time_factor=3) == ["memory 401 MB", "100 MB left", "the server ended"]
    failed = UserReport(latencies=FIGURES.user.latencies, failures=["Stop: TimeoutError"])
    assert msgspec.structs.replace(FIGURES, user=failed).breaches() == ["1 requests failed"]


def test_user_without_a_response_is_a_breach() -> None:
    figures = msgspec.structs.replace(FIGURES, user=UserReport())
    assert figures.breaches() == ["Stop inf ms", "first event inf ms", "/health inf ms"]


def test_report_shows_percentiles_memory_and_answers() -> None:
    _, _, row = floods_table([FIGURES]).splitlines()
    assert [cell.strip() for cell in row.split("|")][1:-1] == [
        "sessions",
        "yes",
        "2 / 3 / 3",
        "5 / 6 / 6",
        "1 / 1 / 1",
        "8 / 9 / 9",
        "50%",
        "60 / 70 / 65",
        "–",
        "5, 10%, 1.5",
        "1,234 × 200, 5 × 429, 20 opened, 3 closed by the server",
    ]
    section = floods_section(FloodResults(figures=[FIGURES], errors=["page: no answer"]), FloodPlan(seconds=5))
    assert "Each flood lasted 5 seconds" in section
    assert "- page: no answer" in section
    assert with_section("# Attacks\n\n## Result\n\nold\n", section) == f"# Attacks\n\n{section}"


def test_user_is_measured_beside_a_flood_with_and_without_a_key() -> None:
    logged: list[str] = []
    plan = FloodPlan(seconds=0.5, names=("chat", "stream-without-key", "socket-ping"))
    results = measure_floods(plan, logged.append)
    assert results.errors == []
    assert len(logged) == len(results.figures) == 3
    chat, stream, socket = results.figures
    assert chat.client.answers["200"] >= 1
    assert stream.client.answers.keys() == {"401"}
    assert socket.client.answers["101"] >= 1
    for figures in results.figures:
        assert figures.user.failures == []
        assert {FIRST_EVENT, STOP, PING, HEALTH, CLIENT} == set(figures.user.latencies)
        assert 0 < figures.memory.before <= figures.memory.peak


def run(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.floods", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_list_names_all_floods_and_a_wrong_name_is_refused_with_a_suggestion() -> None:
    assert run("--list").stdout.count("\n") == len(FLOODS) + 2
    wrong = run("--only", "sesions")
    assert wrong.returncode == 2
    assert "there is no flood 'sesions'; did you mean 'sessions'" in wrong.stderr
    assert "--write needs the complete measurement" in run("--only", "sessions", "--write").stderr
