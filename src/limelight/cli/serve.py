"""`limelight serve`: run the server; with --reload in a child process that restarts when a Python file changes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from limelight.agents.local_sources import with_sources
from limelight.agents.resolve import resolve_agents
from limelight.auth.key_file import Keyring
from limelight.cli.log_setup import set_up_log
from limelight.cli.options import TARGET_HELP, Config, Data, NoEnvFile, env_file_override
from limelight.config import Settings, load_settings
from limelight.errors import SetupError
from limelight.server.app import create_app
from limelight.server.auth.middleware import is_loopback
from limelight.server.process.fd_limit import raise_fd_limit
from limelight.server.process.uvicorn_server import LimelightServer, bind, resolve

RELOAD_INTERVAL = 0.5


def serve(
    targets: Annotated[
        list[str] | None, typer.Argument(metavar="TARGET", help=f"{TARGET_HELP}, or a built-in agent")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.  [default: 127.0.0.1]")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.  [default: 8000]")] = None,
    root_path: Annotated[
        str | None, typer.Option(metavar="PATH", help="Path prefix under which a proxy serves it, as /limelight.")
    ] = None,
    data: Data = None,
    store: Annotated[
        str | None, typer.Option(metavar="URL", help="Store.  [default: sqlite, in the data folder]")
    ] = None,
    config: Config = None,
    no_env_file: NoEnvFile = False,
    source: Annotated[
        list[str] | None, typer.Option(metavar="FILE:CLASS", help="Source of your own framework. May be repeated.")
    ] = None,
    insecure_no_auth: Annotated[
        bool, typer.Option("--insecure-no-auth", help="Serve other machines without a key: all rights for everyone.")
    ] = False,
    reload: Annotated[bool, typer.Option("--reload", help="Restart when a Python file changes.")] = False,
) -> None:
    """Serve agents over HTTP. Without a TARGET: the agents in the configuration, or else the built-in ones.

    `limelight serve .` serves the graphs of the LangGraph project in this folder.
    """
    overrides: dict[tuple[str, str], Any] = {
        ("server", "host"): host,
        ("server", "port"): port,
        ("server", "root_path"): root_path,
        ("store", "data"): None if data is None else str(data),
        ("store", "url"): store,
        ("auth", "insecure_no_auth"): insecure_no_auth or None,
        **env_file_override(no_env_file),
    }
    settings = with_sources(load_settings(config, overrides=overrides), source or ())
    _check_address(settings)
    if reload:
        run_with_reload(sys.argv, watch=Path.cwd())
        return
    raise_fd_limit()
    with bind(settings.server.host, settings.server.port) as listener:
        offer = resolve_agents(settings, targets or ())
        if _is_public(settings):
            offer = offer.without_unconfined(settings.sandbox.level)
        app = create_app(settings, offer.agents)
        set_up_log(None, settings)
        if offer.hint:
            typer.echo(offer.hint)
        LimelightServer(app, listener, announce=typer.echo).run()


def _check_address(settings: Settings) -> None:
    """Raise SetupError if a server without a key can be reached by other machines, directly or through a proxy."""
    keyring = Keyring(Path(settings.store.data))
    if settings.auth.insecure_no_auth or settings.auth.api_key or settings.auth.issuer or keyring.has_any():
        return
    hint = f"`limelight keys create --data {settings.store.data} --user NAME`, or set LIMELIGHT_API_KEY"
    if not _is_on_loopback(settings):
        raise SetupError(
            f"{settings.server.host} can be reached from other machines, so a key is needed: create one with {hint}; "
            "or serve on 127.0.0.1"
        )
    if settings.server.root_path:
        raise SetupError(
            f"server.root_path is for a proxy, which other machines reach, so a key is needed: create one with {hint}"
        )


def _is_on_loopback(settings: Settings) -> bool:
    return is_loopback((resolve(settings.server.host), 0))


def _is_public(settings: Settings) -> bool:
    """Whether others than the user of this machine may use the server, directly or through a proxy.

    A proxy on this machine needs no setting. But it is refused unless there is a key, a token issuer or
    `auth.insecure_no_auth`, so each of these makes the server public.
    """
    auth = settings.auth
    admits_others = auth.insecure_no_auth or auth.api_key or auth.issuer or Keyring(Path(settings.store.data)).has_any()
    return bool(admits_others or settings.server.root_path) or not _is_on_loopback(settings)


def run_with_reload(command: list[str], watch: Path) -> None:
    """Run the command in a child process until Ctrl-C. Restarts it when a Python file changes."""
    arguments = [sys.executable, "-m", "limelight", *(word for word in command[1:] if word != "--reload")]
    environment = {"LIMELIGHT_GRACE_SECONDS": "0", **os.environ}  # a reload does not wait for live runs
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores SIGHUP
            signal.signal(number, _exit)
    child = subprocess.Popen(arguments, env=environment)
    seen = _modification_times(watch)
    try:
        while True:
            time.sleep(RELOAD_INTERVAL)
            now = _modification_times(watch)
            if now != seen:
                changed = sorted(
                    str(p.relative_to(watch)) for p in now.keys() | seen.keys() if now.get(p) != seen.get(p)
                )
                typer.echo(f"{', '.join(changed[:3])} changed: restarting.")
                seen = now
                _terminate(child)
                child = subprocess.Popen(arguments, env=environment)
    except KeyboardInterrupt:
        pass
    finally:
        _terminate(child)


def _exit(*_: object) -> None:
    sys.exit(0)


def _modification_times(folder: Path) -> dict[Path, float]:
    """Return the modification time of each Python file, except in hidden folders, caches and node_modules."""
    found: dict[Path, float] = {}
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "__")) and name != "node_modules"]
        for name in files:
            if name.endswith(".py"):
                path = Path(place) / name
                found[path] = path.stat().st_mtime if path.exists() else 0
    return found


def _terminate(child: "subprocess.Popen[bytes]") -> None:
    child.terminate()
    try:
        child.wait(timeout=15)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
