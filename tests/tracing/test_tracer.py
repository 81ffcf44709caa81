"""The tracer: spans of all runs, runs of earlier processes, and errors that do not affect a run."""

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
from limelight.tracing.tracer import Tracer
from tests.cli.runner import refused
from tests.support import agents
from tests.support.server import collect, serving
from tests.support.wait import eventually
from tests.system.processes.server_process import free_port
from tests.tracing.trace_text import RUN_ID, as_records, spans_of, trace_lines

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


class FakeExporter:
    """An exporter that keeps its spans."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.closed = False

    def export(self, spans: Sequence[Span]) -> None:
        self.spans += spans

    async def close(self) -> None:
        self.closed = True


class FailingExporter(FakeExporter):
    """An exporter that always raises."""

    def export(self, spans: Sequence[Span]) -> None:
        raise RuntimeError("broken")


async def no_log(run_id: str) -> AsyncIterator[Record]:
    raise AssertionError(f"{run_id} must not be read")
    yield


async def test_records_are_published_before_they_are_traced() -> None:
    exporter, shown = FakeExporter(), list[Record]()
    publish = Tracer(exporter, no_log).wrap(lambda _, records: shown.extend(records))
    for record in as_records(RUN):
        assert len(exporter.spans) <= len(shown)
        publish(REF, [record])
    publish(REF, [])
    assert shown == as_records(RUN)
    assert exporter.spans == spans_of(RUN)


async def test_run_of_an_earlier_process_is_read_from_the_log() -> None:
    """Spans that ended in the earlier process are not exported again, and Records during the read are not lost."""
    records, exporter, may_read = as_records(RUN), FakeExporter(), asyncio.Event()
    read_ids: list[str] = []

    async def read(run_id: str) -> AsyncIterator[Record]:
        read_ids.append(run_id)
        await may_read.wait()
        for record in records:
            yield record

    tracer = Tracer(exporter, read)
    tracer.feed(REF, records[3:4])
    await asyncio.sleep(0)
    tracer.feed(REF, records[4:])
    assert exporter.spans == []
    may_read.set()
    await tracer.close()
    assert read_ids == [RUN_ID]
    assert exporter.spans == spans_of(RUN)[1:]
    assert exporter.closed


async def test_unreadable_log_loses_only_the_spans_of_its_run(caplog: pytest.LogCaptureFixture) -> None:
    async def read(run_id: str) -> AsyncIterator[Record]:
        raise OSError("the disk is gone")
        yield

    exporter, records = FakeExporter(), as_records(RUN)
    tracer = Tracer(exporter, read)
    tracer.feed(REF, records[4:])
    await eventually(lambda: "cannot be read" in caplog.text)
    other = [Record(record.seq, "run_2", record.at, record.event) for record in records]
    tracer.feed(REF, other)
    assert [span.name for span in exporter.spans] == ["execute_tool look", "execute_tool dig", "invoke_agent demo"]


async def test_failing_exporter_does_not_affect_publishing(caplog: pytest.LogCaptureFixture) -> None:
    shown: list[Record] = []
    publish = Tracer(FailingExporter(), no_log).wrap(lambda _, records: shown.extend(records))
    publish(REF, as_records(RUN))
    assert len(shown) == len(RUN)
    assert "spans of run run_1 are lost" in caplog.text


async def test_runs_of_a_server_are_traced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exporter = FakeExporter()
    tracer = Tracer(exporter, no_log)
    monkeypatch.setattr("limelight.server.runtime.make_tracing", lambda *_: tracer)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    async with serving(agents.worker, agents.crasher, data=tmp_path) as served:
        await collect(served.ask("go", agent="worker"))
        await collect(served.ask("go", agent="crasher"))
        await eventually(lambda: exporter.spans and exporter.spans[-1].name == "invoke_agent crasher")
    assert exporter.closed
    lines = [line.partition(" ! ") for line in trace_lines(exporter.spans)]
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
def test_invalid_tracing_settings_are_refused(tmp_path: Path, variables: dict[str, str], hint: str) -> None:
    settings = load_settings(environ=variables, overrides={("store", "data"): str(tmp_path)})
    with pytest.raises(SetupError, match=re.escape(hint)):
        make_tracing(settings, make_store(settings), variables)


def test_serve_without_the_extra_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "limelight.tracing.exporter", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    (tmp_path / "config.toml").write_text('[tracing]\nendpoint = "http://127.0.0.1:4318"\n')
    line = refused("--port", str(free_port()), folder=tmp_path)
    assert line.startswith("limelight: config.toml:2: ")
    assert "pip install 'limelight[otel]'" in line


def test_server_does_not_import_opentelemetry_without_an_endpoint() -> None:
    code = "import sys, limelight.server.app; print([name for name in sys.modules if 'opentelemetry' in name])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.strip() == "[]"
