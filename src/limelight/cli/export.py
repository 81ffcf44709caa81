"""`limelight export RUN > run.jsonl`: the Records of a run as JSON lines, as they are in the log."""

import asyncio
import sys
from typing import Annotated

import msgspec
import typer

from limelight.cli.server_choice import Url, User, client_of
from limelight.client import Client


def export(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")],
    url: Url = None,
    user: User = "",
) -> None:
    """Write a run as JSON lines to standard output, for `limelight replay`. Waits for a run that is live."""
    asyncio.run(_export(client_of(url, user), run_id))


async def _export(server: Client, run_id: str) -> None:
    async with server as client:
        async for record in client.export(run_id):
            sys.stdout.buffer.write(msgspec.json.encode(record) + b"\n")
    sys.stdout.flush()
