"""`limelight export RUN > run.jsonl`: a run's Records as JSON lines, exactly as the log has them."""

import asyncio
import sys
from typing import Annotated

import msgspec
import typer

from limelight.cli.server import Url, client_of


def export(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")],
    url: Url = None,
) -> None:
    """Write a run as JSON lines to standard output, for `limelight replay`. Waits for a run that is live."""
    asyncio.run(_export(run_id, url))


async def _export(run_id: str, url: str | None) -> None:
    async with client_of(url) as client:
        async for record in client.export(run_id):
            sys.stdout.buffer.write(msgspec.json.encode(record) + b"\n")
    sys.stdout.flush()
