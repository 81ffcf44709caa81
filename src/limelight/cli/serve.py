"""`limelight serve`: the server, with the agents that are named, or those of the configuration, or the demo."""

import errno
import logging
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer
import uvicorn
from starlette.applications import Starlette

from limelight.config import Settings, load_settings
from limelight.errors import SetupError
from limelight.server.app import create_app
from limelight.server.auth import is_loopback
from limelight.targets import load_agent

GRACE_SECONDS = 5


def serve(
    targets: Annotated[
        list[str] | None, typer.Argument(metavar="[TARGET]...", help="module:name or path/to/file.py:name")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.  [default: 127.0.0.1]")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.  [default: 8000]")] = None,
    data: Annotated[Path | None, typer.Option(help="Data folder.  [default: .limelight]")] = None,
    store: Annotated[
        str | None, typer.Option(metavar="URL", help="Store.  [default: sqlite, in the data folder]")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Configuration.  [default: config.toml, if there is one]")] = None,
    reload: Annotated[bool, typer.Option("--reload", help="Start again when a Python file changes.")] = False,
) -> None:
    """Serve agents over HTTP. Without a TARGET: those of the configuration, or the demo agent."""
    overrides: dict[tuple[str, str], Any] = {
        ("server", "host"): host,
        ("server", "port"): port,
        ("store", "data"): None if data is None else str(data),
        ("store", "url"): store,
    }
    settings = load_settings(config, overrides=overrides)
    _check_address(settings)
    if reload:
        from limelight.cli.reload import run_with_reload

        run_with_reload(sys.argv, watch=Path.cwd())
        return
    listener = _bind(settings)
    app = create_app(settings, [load_agent(target) for target in targets] if targets else None)
    _Server(app, settings, listener).run()


def _check_address(settings: Settings) -> None:
    if not settings.auth.api_key and not is_loopback((_resolve(settings.server.host), 0)):
        raise SetupError(
            f"{settings.server.host} can be reached from other machines, so an API key is needed: "
            "set LIMELIGHT_API_KEY, or serve on 127.0.0.1"
        )


def _resolve(host: str) -> str:
    try:
        return str(socket.getaddrinfo(host, None)[0][4][0])
    except OSError as error:
        raise SetupError(f"the address {host!r} is not known here: {error.strerror}") from error


def _bind(settings: Settings) -> socket.socket:
    """Take the port now, so that a wrong one is one line and not a traceback in the middle of the start."""
    host, port = settings.server.host, settings.server.port
    family = socket.AF_INET6 if ":" in _resolve(host) else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            free = f"PORT={port + 1} make run, or limelight serve --port {port + 1}"
            raise SetupError(
                f"port {port} is taken: end the program that uses it, or choose another: {free}"
            ) from error
        raise SetupError(f"{host}:{port} cannot be used: {error}") from error
    return listener


class _Server(uvicorn.Server):
    """uvicorn, with two differences: it says where it is once it can work, and ends runs before it closes sockets."""

    def __init__(self, app: Starlette, settings: Settings, listener: socket.socket) -> None:
        config = uvicorn.Config(
            app,
            log_config=None,
            lifespan="off",
            access_log=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
            server_header=False,
        )
        super().__init__(config)
        self._parts = app.state.parts
        self._listener = listener
        logging.basicConfig(
            level=os.environ.get("LIMELIGHT_LOG", "WARNING").upper(), format="%(levelname)s %(message)s"
        )

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        with suppress(KeyboardInterrupt):
            super().run(sockets=[self._listener])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self._parts.start()
        await super().startup(sockets)
        host, port = self._listener.getsockname()[:2]
        url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        agents = ", ".join(agent.name for agent in self._parts.agents)
        typer.echo(f"Limelight serves {agents} on {url}  (data in {self._parts.settings.store.data}, Ctrl-C ends it)")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        typer.echo("Limelight is stopping: runs are sealed, streams are closed.")
        await self._parts.drain()
        await super().shutdown(sockets)
        await self._parts.stop()
