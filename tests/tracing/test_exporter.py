"""The log of failed exports, and the messages of the SDK that it suppresses."""

import logging
import threading
from collections.abc import Sequence

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from limelight.tracing.exporter import SDK_LOGGERS, FailureLog, MonitoredExporter

SDK = logging.getLogger(SDK_LOGGERS[0])


class FailingExporter(SpanExporter):
    """Fails with messages of the SDK while `works` is false."""

    works = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if self.works:
            return SpanExportResult.SUCCESS
        SDK.warning("Transient error %s", "tired")
        SDK.error("Failed to export")
        return SpanExportResult.FAILURE


def test_failure_and_recovery_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    failures, exporter = FailureLog("http://there"), FailingExporter()
    monitored = MonitoredExporter(exporter, failures)
    for _ in range(3):
        monitored.export([])
    exporter.works = True
    for _ in range(3):
        monitored.export([])
    failures.close()
    assert caplog.messages == [
        "traces cannot be sent to http://there and are dropped until they can: Transient error tired",
        "traces are sent to http://there again",
    ]


def test_secrets_in_the_endpoint_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    failures = FailureLog("http://ann:sesame@there/v1?api-key=SECRET")
    failures.failed("no answer of ann:sesame@there with url: /v1?api-key=SECRET")
    failures.close()
    assert "http://there/v1 " in caplog.text
    assert "SECRET" not in caplog.text and "sesame" not in caplog.text


def test_sdk_messages_of_other_exports_are_not_suppressed(caplog: pytest.LogCaptureFixture) -> None:
    failures = FailureLog("http://there")
    with failures.capture() as captured:
        other = threading.Thread(target=SDK.error, args=("from an agent",))
        other.start()
        other.join()
        SDK.error("of ours")
    SDK.error("afterwards")
    failures.close()
    assert caplog.messages == ["from an agent", "afterwards"]
    assert captured == ["of ours"]
