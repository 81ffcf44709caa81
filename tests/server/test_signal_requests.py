"""Recognition of requests that stop a run or decide on an approval, by the first bytes of a connection."""

from pathlib import Path

import pytest

from limelight.server.rate_limit import SIGNAL_BURST
from limelight.server.signal_requests import SignalRecognizer
from tests.support import agents
from tests.support.server import Served, asking, serving
from tests.support.wait import eventually


async def live_run(served: Served, agent: str, session_id: str) -> str:
    """Start a run, and return its id when it is live and has asked what it asks."""
    body = asking("go", agent=agent, session_id=session_id)
    async with served.http.stream("POST", "/chat/stream", json=body) as response:
        run_id = response.headers["x-run-id"]
    live = served.runtime.control.live_run
    await eventually(lambda: (found := live(run_id)) and (agent != "asker" or found.execution.grammar.approvals))
    return run_id


@pytest.mark.requirement("stop-not-limited")
async def test_only_signals_of_live_runs_and_open_approvals_are_recognized(tmp_path: Path) -> None:
    async with serving(agents.patient, agents.asker, data=tmp_path) as served:
        run_id = await live_run(served, "asker", "s")
        live = served.runtime.control.live_run(run_id)
        assert live is not None
        (approval_id,) = live.execution.grammar.approvals
        is_signal = SignalRecognizer(served.runtime.control, served.runtime.queues)

        def recognized(line: str) -> bool:
            return is_signal(f"{line} HTTP/1.1\r\nhost: x\r\n".encode())

        assert recognized(f"POST /runs/{run_id}/cancel")
        assert recognized(f"POST /runs/{run_id}/cancel?x=1")
        assert recognized(f"POST /below/a/path/runs/{run_id}/cancel")
        assert recognized(f"POST /runs/{run_id}/approvals/{approval_id}")
        for line in (
            f"GET /runs/{run_id}/cancel",
            "POST /runs/run_unknown/cancel",
            f"POST /runs/{run_id}/approvals/unknown",
            f"POST /runs/{run_id}/approvals/",
            f"POST /runs/{run_id}/cancel/more",
            f"POST /sessions?x=/runs/{run_id}/cancel",
            "",
        ):
            assert not recognized(line), line


@pytest.mark.requirement("stop-not-limited")
async def test_connections_for_one_run_are_limited_and_do_not_use_up_those_for_another(tmp_path: Path) -> None:
    async with serving(agents.patient, data=tmp_path) as served:
        flooded, other = [await live_run(served, "patient", session_id) for session_id in ("a", "b")]
        is_signal = SignalRecognizer(served.runtime.control, served.runtime.queues)
        found = [is_signal(f"POST /runs/{flooded}/cancel HTTP/1.1".encode()) for _ in range(10 * SIGNAL_BURST)]
        assert found[:SIGNAL_BURST] == [True] * SIGNAL_BURST
        assert not all(found)
        assert is_signal(f"POST /runs/{other}/cancel HTTP/1.1".encode())
