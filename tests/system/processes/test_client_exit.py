"""A program that ends while streams and sockets of its client are open."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.client.server_thread import serve_in_thread
from tests.support import agents

PROGRAM = """
import asyncio
from limelight import Client

async def main() -> None:
    client = Client()
    unread, run = await client.start("go", session_id="a"), await client.start("go", session_id="b")
    socket = await client.connect("b").__aenter__()
    streams = [run, client.follow(run.run_id), client.watch("b"), client.export(run.run_id), socket]
    for stream in streams:
        await anext(stream)
    CLOSE
    globals().update(kept=[unread, *streams])

asyncio.run(main())
"""


@pytest.mark.parametrize("close", ["await client.aclose()", "del client"])
def test_program_with_open_streams_ends_without_output(tmp_path: Path, close: str) -> None:
    with serve_in_thread(agents.patient, data=tmp_path / "data") as served:
        ended = subprocess.run(
            [sys.executable, "-W", "error", "-c", PROGRAM.replace("CLOSE", close)],
            env={**os.environ, "LIMELIGHT_URL": served.url},
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert (ended.returncode, ended.stderr) == (0, "")
