"""Chooses the server that a command uses: that of --url, the default one, or one that the command itself starts."""

import asyncio
import contextlib
import logging
import os
import secrets
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec

from limelight.agents.resolve import apply_environment, resolve_agents
from limelight.cli.log_setup import root_handlers_only, set_up_log
from limelight.client import Client, ClientError, SyncClient
from limelight.client.client import DEFAULT_URL
from limelight.config import Settings, load_settings
from limelight.errors import SetupError
from limelight.server.app import create_app
from limelight.server.process.uvicorn_server import LimelightServer, bind

log = logging.getLogger(__name__)


def client_of(url: str | None, user_id: str) -> Client:
    """Return an asyncio client of the named or default server. Raises SetupError if the key does not allow --user."""
    _check_user(url, user_id)
    return Client(url, user_id=user_id)


def sync_client_of(url: str | None, user_id: str) -> SyncClient:
    """Return a blocking client of the named or default server. Raises SetupError if the key does not allow --user."""
    _check_user(url, user_id)
    return SyncClient(url, user_id=user_id)


def _check_user(url: str | None, user_id: str) -> None:
    """Raise SetupError if the server would ignore --user, for example because the key lacks the scope."""
    if not user_id:
        return
    with contextlib.suppress(ClientError), SyncClient(url, user_id=user_id) as client:
        me = client.me()  # errors are suppressed here, because the command itself reports them
        if me.user != user_id:
            reason = "this server has no keys" if me.open else "the key lacks the scope on-behalf-of"
            raise SetupError(f"the server would act for {me.user}, not for {user_id}: {reason}; leave out --user")


@asynccontextmanager
async def client_or_own_server(
    url: str | None,
    targets: list[str],
    agent: str | None = None,
    overrides: Mapping[tuple[str, str], Any] | None = None,
) -> AsyncGenerator[Client]:
    """Context manager: yields a client of the server in `url`, of the default server if it answers, or of a new one.

    The new server runs in this process and serves only the requested agent, so that no other framework is loaded.
    """
    named = url or os.environ.get("LIMELIGHT_URL")
    if targets and named:
        raise SetupError("a named server serves its own agents: leave out either --url or --target")
    if not targets and (named or answers(DEFAULT_URL)):
        async with Client(named) as client:
            yield client
        return
    async with _own_server(targets, agent, overrides) as client:
        yield client


def answers(url: str) -> bool:
    """Whether a Limelight server answers at an address."""
    try:
        return httpx.get(f"{url}/health", timeout=2).json() == {"status": "ok"}
    except (httpx.HTTPError, ValueError):
        return False


@asynccontextmanager
async def _own_server(
    targets: list[str], agent: str | None, overrides: Mapping[tuple[str, str], Any] | None
) -> AsyncGenerator[Client]:
    settings = load_settings(overrides=overrides)
    only = None if targets else agent or ""
    apply_environment(settings, targets, only=only)
    # If the data folder has keys, the server requires one, and only their hashes are stored. So a new key is set.
    key = settings.auth.api_key = settings.auth.api_key or secrets.token_urlsafe(32)
    set_up_log(Path(settings.store.data) / "run.log", settings)  # not stderr, where the view is drawn
    with root_handlers_only():
        async with _serving(settings, targets, only) as url, Client(url, key=key) as client:
            yield client


@asynccontextmanager
async def _serving(settings: Settings, targets: list[str], only: str | None) -> AsyncGenerator[str]:
    offer = resolve_agents(settings, targets, only=only)
    for line in offer.warnings:
        log.warning("%s", line)
    # The person at the terminal has chosen the agents, so they may also set the context.
    agents = [msgspec.structs.replace(agent, context_from_request=True) for agent in offer.agents]
    app = create_app(settings, agents)
    ready = asyncio.Event()
    server = _QuietServer(app, bind("127.0.0.1", 0), announce=lambda _: ready.set())
    serving = asyncio.create_task(server.serve())
    serving.add_done_callback(lambda _: ready.set())
    try:
        await ready.wait()
        if serving.done():
            await serving  # raises the error that prevented the start
        yield server.url
    finally:
        server.should_exit = True
        await serving


class _QuietServer(LimelightServer):
    """A uvicorn server that leaves signals to the command in whose process it runs."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield
