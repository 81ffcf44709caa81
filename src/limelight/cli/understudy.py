"""`limelight understudy`: the offline model alone, for any program that speaks the OpenAI API."""

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
    """Serve the offline model on this machine: it plays a script, or improvises with the tools that it is offered."""
    scripts = load_scripts(script) if script is not None else ()
    logging.basicConfig(level="WARNING", format="%(levelname)s %(message)s")
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(Understudy(scripts, port=port, key=key, pace=pace / 1000)))


async def _serve(endpoint: Understudy) -> None:
    ended = asyncio.Event()
    for wish in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows has Ctrl-C as an exception only
            asyncio.get_running_loop().add_signal_handler(wish, ended.set)
    async with endpoint:
        typer.echo(f"OPENAI_BASE_URL={endpoint.base_url} OPENAI_API_KEY={endpoint.key}")
        await ended.wait()
