"""Traces of a real server: what a collector receives, and that an unavailable collector has no effect on runs."""

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from tests.system.faults.invariants import nothing_is_left, settled
from tests.system.processes.server_process import ServerProcess, free_port
from tests.tracing.collector import Collector, attributes_of, children, named

QUICK = {"OTEL_BSP_SCHEDULE_DELAY": "50"}
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)


def busy_server(folder: Path, environment: Mapping[str, str]) -> ServerProcess:
    variables: Any = environment
    return ServerProcess(folder / "data", "busy", **variables)


def run_through(server: ServerProcess, text: str = "go", headers: dict[str, str] | None = None) -> str:
    body = {"messages": [{"role": "user", "content": text}], "agent": "busy", "session_id": "s"}
    stream = server.stream("POST", "/chat/stream", body, headers)
    assert [data["type"] for _, data in stream][-1] == "done"
    return stream.run_id


@pytest.mark.requirement("traces-without-content")
def test_run_is_exported_as_one_trace(tmp_path: Path) -> None:
    environment = {**QUICK, "OTEL_EXPORTER_OTLP_HEADERS": "x-team=bees", "OTEL_RESOURCE_ATTRIBUTES": "site=cellar"}
    with Collector() as collector:
        environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = collector.url
        with busy_server(tmp_path, environment) as server:
            run_id = run_through(server)
            spans = collector.wait_for("invoke_agent busy")
    run = named(spans, "invoke_agent busy")
    step, task, helper = (
        named(spans, name) for name in ("chat understudy", "execute_tool task", "invoke_agent helper")
    )
    assert children(spans, run) == {"chat understudy"}
    assert children(spans, step) == {"execute_tool search", "execute_tool task"}
    assert children(spans, task) == {"invoke_agent helper"}
    assert children(spans, helper) == {"execute_tool read"}
    assert {span.trace_id for span in spans} == {run.trace_id}
    about = attributes_of(run.attributes)
    assert about["limelight.run.id"] == run_id
    assert about["gen_ai.conversation.id"] == "s"
    assert (about["gen_ai.usage.input_tokens"], about["gen_ai.usage.output_tokens"]) == (11, 7)
    read = named(spans, "execute_tool read")
    assert read.status.code == Status.STATUS_CODE_ERROR
    assert attributes_of(read.attributes)["error.type"] == "tool_error"
    assert run.status.code == Status.STATUS_CODE_UNSET
    assert run.start_time_unix_nano <= step.start_time_unix_nano <= step.end_time_unix_nano <= run.end_time_unix_nano
    assert abs(run.end_time_unix_nano / 1e9 - time.time()) < 600
    assert "honey" not in str(spans)
    assert collector.resource["service.name"] == "limelight"
    assert collector.resource["site"] == "cellar"
    path, headers, _ = collector.requests[0]
    assert (path, headers["x-team"], headers["content-type"]) == ("/v1/traces", "bees", "application/x-protobuf")


def test_settings_file_and_traceparent_of_a_client_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Collector() as collector:
        Path("config.toml").write_text(f'[tracing]\nendpoint = "{collector.url}/v1/traces"\ncontent = true\n')
        with busy_server(tmp_path, {**QUICK, "OTEL_SERVICE_NAME": "stage"}) as server:
            run_through(server, headers={"traceparent": f"00-{TRACE}-{SPAN}-01"})
            run_through(server, headers={"traceparent": "nonsense"})
            run_through(server, headers={"traceparent": f"00-{TRACE}-{SPAN}-00"})  # its client does not keep this one
            run_through(server)
            collector.wait_for("invoke_agent busy", count=3)
            assert server.terminate() == -signal.SIGTERM
        spans = collector.spans
    runs = [span for span in spans if span.name == "invoke_agent busy"]
    assert [(run.trace_id.hex() == TRACE, run.parent_span_id.hex()) for run in runs] == [
        (True, SPAN),
        (False, ""),
        (False, ""),
    ]
    search = attributes_of(next(span for span in spans if span.name == "execute_tool search").attributes)
    assert search["gen_ai.tool.call.arguments"] == '{"q":"honey"}'
    assert search["gen_ai.tool.call.result"] == "bees"
    assert collector.requests[0][0] == "/v1/traces"
    assert collector.resource["service.name"] == "stage"


def test_shutdown_exports_the_remaining_spans(tmp_path: Path) -> None:
    with Collector() as collector:
        environment = {"OTEL_BSP_SCHEDULE_DELAY": "600000", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{collector.url}/x"}
        with busy_server(tmp_path, environment) as server:
            stream = server.ask("wait", agent="busy")
            next(data for _, data in stream if data["type"] == "tool_start" and data["data"]["name"] == "wait")
            assert collector.requests == []
            assert server.terminate() == -signal.SIGTERM
        run = named(collector.spans, "invoke_agent busy")
    assert collector.requests[0][0] == "/x"
    assert run.status.code == Status.STATUS_CODE_ERROR
    assert attributes_of(run.attributes)["error.type"] == "interrupted"
    assert attributes_of(named(collector.spans, "execute_tool wait").attributes)["error.type"] == "interrupted"


def test_run_interrupted_by_a_crash_ends_in_its_trace(tmp_path: Path) -> None:
    with Collector() as collector:
        environment = {**QUICK, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
        with busy_server(tmp_path, environment) as server:
            stream = server.ask("wait", agent="busy")
            next(data for _, data in stream if data["type"] == "tool_start" and data["data"]["name"] == "wait")
            collector.wait_for("chat understudy")
            server.kill()
        with busy_server(tmp_path, environment):
            spans = collector.wait_for("invoke_agent busy")
    run, wait = named(spans, "invoke_agent busy"), named(spans, "execute_tool wait")
    assert attributes_of(run.attributes)["error.type"] == attributes_of(wait.attributes)["error.type"] == "interrupted"
    assert children(spans, run) == {"chat understudy", "execute_tool wait"}
    assert {span.trace_id for span in spans} == {run.trace_id}
    assert wait.start_time_unix_nano < wait.end_time_unix_nano
    assert len({span.span_id for span in spans}) == len(spans)


def test_run_that_waits_over_a_restart_is_one_span(tmp_path: Path) -> None:
    with Collector() as collector:
        environment: Any = {**QUICK, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
        with ServerProcess(tmp_path / "data", "asks", **environment) as server:
            stream = server.ask(session_id="s")
            asked = next(frame for _, frame in stream if frame["type"] == "approval")["data"]
            assert server.terminate() == -signal.SIGTERM
        assert "invoke_agent asks" not in {span.name for span in collector.spans}
        with ServerProcess(tmp_path / "data", "asks", **environment) as server:
            restarted = time.time_ns()
            server.post(f"/runs/{stream.run_id}/approvals/{asked['approval_id']}", {"decision": "approve"})
            spans = collector.wait_for("invoke_agent asks")
    run = named(spans, "invoke_agent asks")
    assert run.start_time_unix_nano < restarted < run.end_time_unix_nano
    assert attributes_of(run.attributes)["limelight.run.state"] == "finished"
    events = [event.name for span in spans for event in span.events]
    assert events == ["limelight.approval.requested", "limelight.approval.resolved"]


def test_unavailable_collector_is_logged_once(tmp_path: Path) -> None:
    url = f"http://user:letmein@127.0.0.1:{free_port()}"
    environment = {**QUICK, "OTEL_EXPORTER_OTLP_TIMEOUT": "1", "OTEL_EXPORTER_OTLP_ENDPOINT": url}
    with busy_server(tmp_path, environment) as server:
        run_through(server)
        server.until_it_says("cannot be sent")
        before = settled(server)
        run_through(server)
        nothing_is_left(server, before)
        assert server.terminate() == -signal.SIGTERM
    lines = [line for line in server.log.splitlines() if not line.startswith("Limelight ")]
    assert len(lines) == 1, server.log
    assert "WARNING traces cannot be sent to http://127.0.0.1:" in lines[0]
    assert "letmein" not in server.log


def test_refusing_collector_is_logged_once_and_its_recovery_too(tmp_path: Path) -> None:
    with Collector(status=400) as collector:
        environment = {**QUICK, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
        with busy_server(tmp_path, environment) as server:
            before = None
            for number in (1, 2, 3):
                run_through(server)
                collector.wait_for("invoke_agent busy", count=number)
                before = before or settled(server)
            server.until_it_says("cannot be sent")
            assert server.log.count("WARNING") == 1
            collector.status = 200
            run_through(server)
            server.until_it_says("again")
            nothing_is_left(server, before)
    assert server.log.count("WARNING") == 2
    assert "400" in server.log


@pytest.mark.requirement("tracing-harmless")
def test_hanging_collector_delays_neither_runs_nor_the_shutdown(tmp_path: Path) -> None:
    with Collector(hangs=True) as collector:
        environment = {**QUICK, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_EXPORTER_OTLP_TIMEOUT": "600"}
        environment |= {"OTEL_BSP_MAX_QUEUE_SIZE": "8", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "4"}
        with busy_server(tmp_path, environment) as server:
            run_through(server)
            collector.wait_for_request()
            before = settled(server)
            for _ in range(20):
                run_through(server)
            nothing_is_left(server, before)
            assert server.terminate() == -signal.SIGTERM
        assert server.log.count("traces cannot be sent") == 1, server.log
        assert server.log.count("WARNING") == 1


@pytest.mark.parametrize(
    "off", [{"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none"}, {"OTEL_EXPORTER_OTLP_ENDPOINT": ""}]
)
def test_tracing_can_be_disabled(tmp_path: Path, off: dict[str, str]) -> None:
    with Collector() as collector:
        environment = {**QUICK, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, **off}
        with busy_server(tmp_path, environment) as server:
            run_through(server)
            assert server.terminate() == -signal.SIGTERM
        assert collector.requests == []
