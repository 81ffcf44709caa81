"""`limelight understudy`: serves the understudy, the built-in offline model, to programs that use the OpenAI API."""

import asyncio
import logging
import signal
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from limelight.understudy.scripts import load_scripts
from limelight.understudy.server import Understudy


def understudy(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 8010,
    script: Annotated[Path | None, typer.Option(metavar="FILE", help="YAML script.  [default: it improvises]")] = None,
    pace: Annotated[
        float,
        typer.Option(
            metavar="MS",
            min=0,
            envvar="LIMELIGHT_UNDERSTUDY_PACE_MS",
            help="Milliseconds between words, without a script.",
        ),
    ] = 15,
    key: Annotated[str, typer.Option(help="The API key.  [default: a random one]", show_default=False)] = "",
) -> None:
    """Serve the offline model on this machine. It plays a script, or improvises with the tools in each request."""
    scripts = load_scripts(script) if script is not None else ()
    logging.basicConfig(level="WARNING", format="%(levelname)s %(message)s")
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(Understudy(scripts, port=port, key=key, pace=pace / 1000)))


async def _serve(endpoint: Understudy) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # on Windows Ctrl-C raises KeyboardInterrupt
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with endpoint:
        typer.echo(f"OPENAI_BASE_URL={endpoint.base_url} OPENAI_API_KEY={endpoint.key}")
        await stopped.wait()
