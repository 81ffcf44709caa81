"""Following all runs: what is handed on, what is caught up with, and that nothing of it can break a run."""

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from limelight.config import load_settings
from limelight.errors import SetupError
from limelight.events import AnyEvent, FinalAnswer, Record, RunFinished, RunStarted, ToolFinished, ToolStarted
from limelight.models import SessionRef
from limelight.server.app import make_store
from limelight.server.tracing_config import make_tracing
from limelight.tracing.span import Span
from limelight.tracing.tracing import Tracing
from tests.cli.runner import refused
from tests.support import agents
from tests.support.server import collect, serving
from tests.support.wait import eventually
from tests.system.processes.server_process import free_port
from tests.tracing.trace_text import RUN_ID, drawn, recorded, traced

REF = SessionRef("local", "s")
RUN: list[AnyEvent] = [
    RunStarted(agent="demo"),
    ToolStarted(call_id="a", name="look", args={}),
    ToolFinished(call_id="a", result=""),
    ToolStarted(call_id="b", name="dig", args={}),
    ToolFinished(call_id="b", result=""),
    FinalAnswer(content=""),
    RunFinished(),
]


class Box:
    """An outlet that keeps what it gets."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.closed = False

    def put(self, spans: Sequence[Span]) -> None:
        self.spans += spans

    async def close(self) -> None:
        self.closed = True


class Torn(Box):
    """One that breaks."""

    def put(self, spans: Sequence[Span]) -> None:
        raise RuntimeError("torn")


async def nothing(run_id: str) -> AsyncIterator[Record]:
    raise AssertionError(f"{run_id} needs no reading")
    yield


async def test_viewers_come_first_and_spans_follow() -> None:
    box, shown = Box(), list[Record]()
    publish = Tracing(box, nothing).after(lambda _, records: shown.extend(records))
    for record in recorded(RUN):
        assert len(box.spans) <= len(shown)
        publish(REF, [record])
    publish(REF, [])
    assert shown == recorded(RUN)
    assert box.spans == traced(RUN)


async def test_a_run_of_a_process_that_is_gone_is_read_from_its_log() -> None:
    """The spans that ended there were sent there; what comes while the log is being read is not lost."""
    records, box, may_read = recorded(RUN), Box(), asyncio.Event()
    read_ids: list[str] = []

    async def read(run_id: str) -> AsyncIterator[Record]:
        read_ids.append(run_id)
        await may_read.wait()
        for record in records:
            yield record

    tracing = Tracing(box, read)
    tracing.follow(REF, records[3:4])
    await asyncio.sleep(0)
    tracing.follow(REF, records[4:])
    assert box.spans == []
    may_read.set()
    await tracing.close()
    assert read_ids == [RUN_ID]
    assert box.spans == traced(RUN)[1:]
    assert box.closed


async def test_a_log_that_cannot_be_read_costs_its_spans_only(caplog: pytest.LogCaptureFixture) -> None:
    async def read(run_id: str) -> AsyncIterator[Record]:
        raise OSError("the disk is gone")
        yield

    box, records = Box(), recorded(RUN)
    tracing = Tracing(box, read)
    tracing.follow(REF, records[4:])
    await eventually(lambda: "cannot be read" in caplog.text)
    other = [Record(record.seq, "run_2", record.at, record.event) for record in records]
    tracing.follow(REF, other)
    assert [span.name for span in box.spans] == ["execute_tool look", "execute_tool dig", "invoke_agent demo"]


async def test_an_outlet_that_breaks_breaks_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    shown: list[Record] = []
    publish = Tracing(Torn(), nothing).after(lambda _, records: shown.extend(records))
    publish(REF, recorded(RUN))
    assert len(shown) == len(RUN)
    assert "spans of run run_1 are lost" in caplog.text


async def test_a_real_run_in_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    box = Box()
    tracing = Tracing(box, nothing)
    monkeypatch.setattr("limelight.server.runtime.make_tracing", lambda *_: tracing)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    async with serving(agents.worker, agents.crasher, data=tmp_path) as served:
        await collect(served.ask("go", agent="worker"))
        await collect(served.ask("go", agent="crasher"))
        await eventually(lambda: box.spans and box.spans[-1].name == "invoke_agent crasher")
    assert box.closed
    lines = [line.partition(" ! ") for line in drawn(box.spans)]
    assert [(line.rsplit(" ", 1)[0], error) for line, _, error in lines] == [
        ("invoke_agent worker", ""),
        ("  execute_tool search", ""),
        ("  execute_tool task", ""),
        ("    invoke_agent helper", ""),
        ("  execute_tool fail", "tool_error"),
        ("invoke_agent crasher", "agent_error"),
        ("  execute_tool crash", "agent_error"),
    ]


@pytest.mark.parametrize(
    ("variables", "hint"),
    [
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4318"},
            "which sets `tracing.endpoint`: 'localhost:4318/v1/traces'",
        ),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://:x"}, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://:x' is no"),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "OTEL_EXPORTER_OTLP_PROTOCOL: traces are sent as http/protobuf only, not 'grpc'",
        ),
    ],
)
def test_what_cannot_work_is_refused(tmp_path: Path, variables: dict[str, str], hint: str) -> None:
    settings = load_settings(environ=variables, overrides={("store", "data"): str(tmp_path)})
    with pytest.raises(SetupError, match=re.escape(hint)):
        make_tracing(settings, make_store(settings), variables)


def test_serve_with_tracing_but_without_the_extra_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "limelight.tracing.exporter", None)  # an import of it fails
    (tmp_path / "config.toml").write_text('[tracing]\nendpoint = "http://127.0.0.1:4318"\n')
    line = refused("--port", str(free_port()), folder=tmp_path)
    assert line.startswith("limelight: config.toml:2: ")
    assert "pip install 'limelight[otel]'" in line


def test_opentelemetry_is_not_loaded_for_nothing() -> None:
    code = "import sys, limelight.server.app; print([name for name in sys.modules if 'opentelemetry' in name])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert told.stdout.strip() == "[]"
