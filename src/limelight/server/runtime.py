"""What the routes work with: the parts of one running server, put together by `app.py`."""

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from limelight import __version__
from limelight.auth.key_file import Keyring
from limelight.config import Settings
from limelight.dialects.base import Dialect
from limelight.errors import BadRequest, Draining, Interrupted, SetupError, UnknownFormat
from limelight.events import RunFailed
from limelight.ids import sortable_id
from limelight.log_context import log_fields
from limelight.models import SessionRef
from limelight.redaction.rules import make_redactor
from limelight.runs.agents import Agent, Agents
from limelight.runs.committer import Committer
from limelight.runs.control import Control
from limelight.runs.engine import Engine
from limelight.runs.hub import Hub
from limelight.runs.limits import Quota, RunLimits, TokenBuckets
from limelight.runs.maintenance import Maintenance
from limelight.runs.memory import Memories
from limelight.runs.queue import SessionQueues
from limelight.runs.recovery import Recovery
from limelight.runs.retention_guard import RetentionGuard
from limelight.runs.sessions import Sessions
from limelight.runs.viewer import Format, Viewer
from limelight.runs.workspace import Workspaces
from limelight.server.agent_resources import ServerHome
from limelight.server.auth.authenticator import Gate
from limelight.server.auth.jwt_config import issuer_of
from limelight.server.body_budget import Loads
from limelight.server.gauges import Levels
from limelight.server.heartbeat import Pulse
from limelight.server.metrics import Metrics
from limelight.server.rate_limit import Rates
from limelight.server.readiness import Probing
from limelight.server.tracing_config import tracing_of
from limelight.server.v2.message_count import MessageCounts
from limelight.stores.base import Store

T = TypeVar("T")
log = logging.getLogger(__name__)
FAREWELL_SECONDS = 2
"""How long streams may take to send their last frames."""
CLOSING_SECONDS = 3
"""How long an agent's framework may take to close what it has open."""


SIGNALS = 20
SIGNALS_PER_SECOND = 2.0
"""Stops and answers to approvals that a run takes at full speed: so many at once, and so many per second."""


class Parts:
    """One server. `start` and `stop` are called once; `drain` ends the work before the sockets close."""

    def __init__(self, settings: Settings, agents: Agents, store: Store, dialects: Mapping[str, type[Dialect]]) -> None:
        limits = RunLimits(
            run_seconds=settings.limits.run_seconds,
            silence_seconds=settings.limits.silence_seconds,
            approval_seconds=settings.approvals.expiry_seconds,
            result_max=settings.limits.result_bytes,
            session_max=settings.limits.session_bytes,
        )
        self.settings = settings
        self.quota = Quota(
            runs=settings.limits.runs,
            runs_per_user=settings.limits.runs_per_user,
            waiting_per_user=settings.limits.waiting_per_user,
            sessions_per_user=settings.limits.sessions_per_user,
            streams_per_user=settings.limits.streams_per_user,
        )
        self.signals = TokenBuckets(SIGNALS, SIGNALS_PER_SECOND, monotonic)
        self.rates = Rates(settings.limits.requests_per_minute)
        self.loads = Loads(settings.limits.request_bytes_per_user)
        self.gate = Gate(settings.auth.api_key, Keyring(Path(settings.store.data)), issuer_of(settings))
        self.agents = agents
        self.store = store
        self.probing = Probing(store, settings.store.expiry_seconds)
        self.hub = Hub()
        self.pulse = Pulse(settings.server.heartbeat_seconds)
        self._dialects = dialects
        self.metrics = Metrics(__version__, [agent.name for agent in agents])
        self._tracing = tracing_of(settings, store)
        publish = self.hub.publish if self._tracing is None else self._tracing.wrap(self.hub.publish)
        self._committer = Committer(store, publish, self.hub.wake, self.metrics)
        workspaces = Workspaces(Path(settings.store.data) / "workspaces")
        memories = Memories(store, agents, settings.store.expiry_seconds)
        redactor = make_redactor(settings)
        engine = Engine(store, self._committer, limits, redactor, self.metrics)
        self.queues = SessionQueues()
        self._recovery = Recovery(
            engine,
            self.queues,
            agents,
            reopen=lambda waiting: self.sessions.reopen(waiting),
        )
        self.control = Control(store, self.queues, agents, self._recovery)
        self.sessions = Sessions(engine, self.control, self.queues, self.quota, self.hub, workspaces, memories)
        self.retention = RetentionGuard(Path(settings.store.data), settings.store.retention_max_gap_days)
        self.metrics.registry.register(Levels(store, self.control, self.queues, self.pulse, self.retention, dialects))
        self._maintenance = Maintenance(
            store,
            self.sessions.forget,
            memories.tidy,
            self._recovery.recover,
            retention_days=settings.store.retention_days,
            guard=self.retention,
        )
        self.message_counts = MessageCounts(store, self.format("v2"))
        self._home: ServerHome | None = None
        self._opened: list[Agent] = []
        self._starting: asyncio.Lock | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._in_a_hurry = asyncio.Event()
        self._closing = asyncio.Event()
        self.started = False

    async def start(self) -> None:
        """Open the store, mend what a crash left, begin to listen. Harmless if it was done before."""
        self._starting = self._starting or asyncio.Lock()
        async with self._starting:
            if self.started:
                return
            if self.draining:
                raise Draining("the server is shutting down: try again in a moment")
            await self.store.open()
            self._committer.start()
            try:
                await self.retention.open(self.store)  # before recovery, which writes records by the clock of now
                self._home = self._settled_home()
                await self._open_agents(self._home)
                await self._recovery.recover()
            except BaseException:
                await self._close_agents()
                await self._committer.stop()
                await self.store.close()
                raise
            self.control.start()
            self._maintenance.start()
            self.pulse.start()
            self.started = True

    def _settled_home(self) -> ServerHome:
        """With the data folder, for files of agents, also where the store is elsewhere: nobody makes it later."""
        home = ServerHome(Path(self.settings.store.data), self.settings.understudy.pace_ms / 1000)
        try:
            _ = home.data
        except OSError as error:
            told = f"the data folder {self.settings.store.data} cannot be made ({error.strerror})"
            raise SetupError(f"{told}: choose another with --data") from error
        return home

    async def _open_agents(self, home: ServerHome) -> None:
        """All at once: each may import a framework, in a thread. If one cannot be opened, the server does not start."""
        ends = await asyncio.gather(*(self._open(agent, home) for agent in self.agents), return_exceptions=True)
        for error in ends:
            if error is not None:
                raise error

    async def _open(self, agent: Agent, home: ServerHome) -> None:
        await agent.source.open(home)
        self._opened.append(agent)

    async def _close_agents(self) -> None:
        if self._home is None:
            return
        await asyncio.gather(*map(self._close, self._opened))
        self._opened.clear()
        await self._home.close()
        self._home = None

    async def _close(self, agent: Agent) -> None:
        try:
            async with asyncio.timeout(CLOSING_SECONDS):
                await agent.source.close()
        except Exception as error:  # the others are to be closed all the same
            log.warning("agent %s could not be closed: %r", agent.name, error)

    @property
    def draining(self) -> bool:
        """Whether it comes to its end, so that no run can begin."""
        return self.sessions.closed

    async def drain(self, grace_seconds: float = 0) -> None:
        """Let no run begin, give those that go on their time, then end what is left of them, then all streams."""
        self.sessions.close()
        await self._give_time(grace_seconds)
        verdict = RunFailed(code=Interrupted.code, message="the server was shut down", error_id=sortable_id("err_"))
        drained = await self.sessions.drain(verdict)
        for run in drained.ended:
            about = log_fields(
                run_id=run.run_id, session_id=run.ref.session_id, agent=run.agent, error_id=verdict.error_id
            )
            log.warning("run %s is ended, %s: the server is shut down", run.run_id, verdict.error_id, extra=about)
        for run in drained.left:
            about = log_fields(run_id=run.run_id, session_id=run.ref.session_id, agent=run.agent)
            told = "the log cannot be written, so its end and what it said last are not in it; the next start ends it"
            log.error("run %s is left open: %s", run.run_id, told, extra=about)
        self._closing.set()
        self.pulse.close()
        await self.pulse.closed(FAREWELL_SECONDS)

    async def _give_time(self, seconds: float) -> None:
        waits = [asyncio.create_task(self.sessions.settled()), asyncio.create_task(self._in_a_hurry.wait())]
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    def hurry(self) -> None:
        """Runs have had their time."""
        self._in_a_hurry.set()

    async def stop(self) -> None:
        if not self.started:
            return
        await self.drain()
        self.started = False
        await self.pulse.stop()
        await self._maintenance.stop()
        await self.control.stop()
        await self._committer.stop()
        await self._close_agents()
        if self._tracing is not None:
            await self._tracing.close()
        await self.store.close()

    def spawn(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Do something to its end, whoever leaves meanwhile."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    async def unless_closing(self, work: "asyncio.Task[T]", leaving: "asyncio.Task[None]") -> T:
        """Wait for it, whoever else does; but not longer than the server lives, or than there is a client. Raises
        Draining, or BadRequest, which nobody reads."""
        closing = asyncio.create_task(self._closing.wait())
        try:
            await asyncio.wait({work, closing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            closing.cancel()
        if not work.done() and leaving.done():
            raise BadRequest("the client left before its answer was there")
        if not work.done():
            raise Draining("the server is shutting down before the answer is there: ask again in a moment")
        return work.result()

    def _done(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.debug("nobody waited for this: %r", task.exception())

    def format(self, name: str | None, root: str = "") -> Format:
        """The named format, or the default one. `root` is what its links begin with."""
        wanted = name or self.settings.server.default_format
        if wanted not in self._dialects:
            known = ", ".join(sorted(self._dialects))
            raise UnknownFormat(f"there is no format {wanted[:50]!r}; there are: {known}", path="format")
        return Format(wanted, self._dialects[wanted], root)

    def stream_place(self, owner: str) -> AbstractContextManager[None]:
        """A place for one more stream or socket while it is being opened. Raises TooManyStreams if there is none."""
        self._check_streams(owner)
        return self.hub.hold(owner)

    def stream_viewer(self, ref: SessionRef, format_: Format) -> Viewer:
        """A viewer for one more stream, to be entered before anything is awaited: only then it is counted."""
        self._check_streams(ref.owner)
        return self.viewer(ref, format_)

    def _check_streams(self, owner: str) -> None:
        self.quota.check_streams(owner, self.hub.viewers_of(owner))

    def viewer(self, ref: SessionRef, format_: Format) -> Viewer:
        return Viewer(self.hub, self.store, ref, format_)
