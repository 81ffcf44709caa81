"""The `error_id` that a client gets is in the server's log, with the ids of the run and the session."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect

from limelight.log_context import fields_of_record
from limelight.runs.stop_and_approvals import Control
from tests.support import agents
from tests.support.server import Served, asking, collect, serving


class LogRecorder(logging.Handler):
    """Keeps every log line with its ids."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[str, dict[str, str]]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((record.getMessage(), fields_of_record(record)))

    def ids_of_error(self, error_id: str) -> dict[str, str]:
        (found,) = [ids for _, ids in self.lines if ids.get("error_id") == error_id]
        return found


@pytest.fixture
def log() -> Iterator[LogRecorder]:
    handler = LogRecorder()
    logging.getLogger().addHandler(handler)
    logging.getLogger("limelight.runs.engine").setLevel(logging.ERROR)
    yield handler
    logging.getLogger().removeHandler(handler)


async def broken(*_: object) -> Any:
    logging.getLogger("cellar").warning("a leak")
    raise RuntimeError("the cellar is flooded")


async def run_of(served: Served) -> str:
    return (await served.http.post("/chat", json=asking("hi", session_id="s"))).json()["run_id"]


@pytest.mark.requirement("no-traceback")
async def test_unexpected_error_of_a_request_is_logged_under_its_error_id(
    tmp_path: Path, log: LogRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(agents.talker, data=tmp_path) as served:
        run_id = await run_of(served)
        monkeypatch.setattr(Control, "open_approvals", broken)
        response = await served.http.get(f"/runs/{run_id}")
        monkeypatch.undo()
    assert (response.status_code, response.json()["code"]) == (500, "internal")
    assert "cellar" not in response.text
    assert log.ids_of_error(response.json()["error_id"])["run_id"] == run_id
    assert ("a leak", {"run_id": run_id}) in log.lines


@pytest.mark.requirement("log-ids")
async def test_error_of_a_run_is_logged_under_its_error_id(tmp_path: Path, log: LogRecorder) -> None:
    async with serving(agents.crasher, data=tmp_path) as served:
        frames = await collect(served.ask("go", session_id="s"))
    (error,) = [frame.data["data"] for frame in frames if frame.type == "error"]
    about = log.ids_of_error(error["error_id"])
    assert about.pop("run_id").startswith("run_")
    assert about == {"session_id": "s", "agent": "crasher", "error_id": error["error_id"]}


async def test_unexpected_error_of_a_socket_is_logged_under_its_error_id(
    tmp_path: Path, log: LogRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(agents.talker, data=tmp_path) as served:
        await run_of(served)
        monkeypatch.setattr("limelight.server.v2.commands.session_info", broken)
        url = f"{served.url.replace('http', 'ws', 1)}/api/v2/ws/s"
        async with connect(url, proxy=None) as socket:
            await socket.send(json.dumps({"type": "get_state"}))
            async for frame in socket:
                message = json.loads(frame)
                if message["type"] == "error":
                    break
            else:
                raise AssertionError("no error was sent")
    error_id = message["message"].rpartition(" ")[2]
    assert log.ids_of_error(error_id) == {"session_id": "s", "error_id": error_id}
