"""The runtime of a server: creates all components that routes and sockets use, and starts and stops them."""

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from limelight import __version__
from limelight.config import Settings
from limelight.dialects.base import Dialect
from limelight.errors import BadRequest, Draining, Interrupted, UnknownFormat
from limelight.events import RunFailed
from limelight.ids import sortable_id
from limelight.log_context import log_fields
from limelight.models import SessionRef
from limelight.redaction.rules import make_redactor
from limelight.runs.agent_registry import Agents
from limelight.runs.committer import Committer
from limelight.runs.conversation_memory import Memories
from limelight.runs.engine import Engine
from limelight.runs.hub import Hub
from limelight.runs.limits import MemoryLimits, Quota, RunLimits
from limelight.runs.maintenance import Maintenance
from limelight.runs.queue import SessionQueues
from limelight.runs.recovery import Recovery
from limelight.runs.retention_guard import RetentionGuard
from limelight.runs.sessions import SessionResources, Sessions
from limelight.runs.stop_and_approvals import Control
from limelight.runs.viewer import Format, Viewer
from limelight.runs.workspace import Workspaces
from limelight.server.agent_lifecycle import AgentLifecycle
from limelight.server.auth.authenticator import Authenticator
from limelight.server.metrics import ConnectionGauges, Metrics, RunGauges
from limelight.server.open_streams import OpenStreams
from limelight.server.process.connection_table import ConnectionLimits, ConnectionTable
from limelight.server.process.fd_limit import usable_connections
from limelight.server.rate_limit import (
    SIGNAL_BURST,
    SIGNALS_PER_SECOND,
    USER_MESSAGE_BURST,
    USER_MESSAGES_PER_SECOND,
    RateLimiter,
    Throttle,
)
from limelight.server.readiness import Readiness
from limelight.server.request_body import BodyBudget, JsonDecoder
from limelight.server.response_budget import ResponseBudget
from limelight.server.token_bucket import TokenBuckets
from limelight.server.tracing_config import make_tracing
from limelight.server.v2.message_history import MessageCounts
from limelight.sources.image_budget import ImageBudget
from limelight.stores.base import Store

T = TypeVar("T")
log = logging.getLogger(__name__)
STREAM_CLOSE_SECONDS = 2
"""Time limit for streams to send their last frames when the server stops."""


class Runtime:
    """All components of one server. It can be started once and stopped once."""

    def __init__(self, settings: Settings, agents: Agents, store: Store, dialects: Mapping[str, type[Dialect]]) -> None:
        self.settings = settings
        self.quota = _quota(settings)
        self.signal_buckets = TokenBuckets(SIGNAL_BURST, SIGNALS_PER_SECOND, monotonic)
        self.message_buckets = TokenBuckets(USER_MESSAGE_BURST, USER_MESSAGES_PER_SECOND, monotonic)
        self.rate_limiter = RateLimiter(settings.limits.requests_per_minute)
        self.body_budget = BodyBudget(settings.limits.request_bytes_per_user, settings.limits.request_bytes)
        self.json_decoder = JsonDecoder()
        self.response_budget = ResponseBudget()
        self.authenticator = Authenticator.from_settings(settings)
        self.agents = agents
        self.store = store
        self.readiness = Readiness(store, settings.store.expiry_seconds)
        self.hub = Hub()
        self.open_streams = OpenStreams(settings.server.heartbeat_seconds)
        self._dialects = dialects
        self.metrics = Metrics(__version__, [agent.name for agent in agents])
        self.connections = ConnectionTable(
            _connection_limits(settings), monotonic, self.metrics.count_closed_connection
        )
        self.throttle = Throttle()
        self._tracing = make_tracing(settings, store)
        publish = self.hub.publish if self._tracing is None else self._tracing.wrap(self.hub.publish)
        self._committer = Committer(store, publish, self.hub.wake, self.metrics)
        self._workspaces = Workspaces(Path(settings.store.data) / "workspaces")
        memory_limits = MemoryLimits(
            bytes_per_user=settings.limits.conversation_bytes_per_user,
            bytes_in_all=settings.limits.conversation_bytes,
        )
        memories = Memories(store, agents, settings.store.expiry_seconds, memory_limits)
        resources = SessionResources(self.hub, self._workspaces, memories)
        self.redactor = make_redactor(settings)
        engine = Engine(store, self._committer, _run_limits(settings), self.redactor, self.metrics)
        self.queues = SessionQueues()
        self._recovery = Recovery(engine, self.queues, agents, reopen=lambda waiting: self.sessions.reopen(waiting))
        self.control = Control(store, self.queues, agents, self._recovery)
        self.sessions = Sessions(
            engine,
            self.control,
            self.queues,
            self.quota,
            resources,
            image_budget=ImageBudget(settings.limits.image_pixels_per_user, settings.limits.image_pixels),
            allows_unconfined=self._allows_unconfined,
        )
        self.retention = RetentionGuard(Path(settings.store.data), settings.store.retention_max_gap_days)
        self.metrics.registry.register(RunGauges(store, self.control, self.queues, self.retention))
        self.metrics.registry.register(ConnectionGauges(self.connections, self.open_streams, dialects))
        self._maintenance = Maintenance(
            store,
            resources.release,
            memories.tidy,
            self._recovery.recover,
            retention_days=settings.store.retention_days,
            guard=self.retention,
        )
        self.message_counts = MessageCounts(store, self.format("v2"))
        self._agent_lifecycle = AgentLifecycle(agents, settings)
        self._start_lock: asyncio.Lock | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._grace_ended = asyncio.Event()
        self._drained = asyncio.Event()
        self.started = False

    def _allows_unconfined(self) -> bool:
        """Whether agents with unconfined code may run: the setting says so, or only this machine can use the server.

        A key can be created while the server runs, and a proxy can then forward requests of others.
        """
        if self.settings.sandbox.level == "none":
            return True
        return self.authenticator.is_open and not self.settings.auth.insecure_no_auth

    async def start(self) -> None:
        """Open the store and the agents, recover runs after a crash, and start background tasks. Idempotent.

        Raises Draining if the server is shutting down.
        """
        self._start_lock = self._start_lock or asyncio.Lock()
        async with self._start_lock:
            if self.started:
                return
            if self.is_draining:
                raise Draining("the server is shutting down: try again in a moment")
            await self.store.open()
            self._workspaces.make_private()
            self._committer.start()
            try:
                await self.retention.open(self.store)  # before recovery, which writes Records with the current time
                await self._agent_lifecycle.open()
                await self._recovery.recover()
            except BaseException:
                await self._agent_lifecycle.close()
                await self._committer.stop()
                await self.store.close()
                raise
            self.control.start()
            self._maintenance.start()
            self.open_streams.start()
            self.started = True

    @property
    def is_draining(self) -> bool:
        """Whether the server is shutting down and starts no new runs."""
        return self.sessions.closed

    async def drain(self, grace_seconds: float = 0) -> None:
        """End all runs and close all streams.

        New runs are refused. Live runs have `grace_seconds` to end; then they are ended. The server calls this before
        it closes connections.
        """
        self.sessions.close()
        await self._wait_for_runs(grace_seconds)
        verdict = RunFailed(code=Interrupted.code, message="the server was shut down", error_id=sortable_id("err_"))
        drained = await self.sessions.drain(verdict)
        for run in drained.ended:
            extra = log_fields(
                run_id=run.run_id, session_id=run.ref.session_id, agent=run.agent, error_id=verdict.error_id
            )
            log.warning("run %s is ended, %s: the server is shut down", run.run_id, verdict.error_id, extra=extra)
        for run in drained.left:
            extra = log_fields(run_id=run.run_id, session_id=run.ref.session_id, agent=run.agent)
            reason = "the store refuses its last events and its end; the server ends this run at its next start"
            log.error("run %s is left open: %s", run.run_id, reason, extra=extra)
        self._drained.set()
        self.open_streams.close()
        await self.open_streams.wait_closed(STREAM_CLOSE_SECONDS)

    async def _wait_for_runs(self, seconds: float) -> None:
        waits = [asyncio.create_task(self.sessions.settled()), asyncio.create_task(self._grace_ended.wait())]
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    def end_grace_period(self) -> None:
        """End the grace period of `drain` early, so that live runs are ended now."""
        self._grace_ended.set()

    async def stop(self) -> None:
        if not self.started:
            return
        await self.drain()
        self.started = False
        await self.open_streams.stop()
        await self._maintenance.stop()
        await self.control.stop()
        await self._committer.stop()
        await self._agent_lifecycle.close()
        if self._tracing is not None:
            await self._tracing.close()
        await self.store.close()

    def spawn(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Run a coroutine as a background task, which continues if the client disconnects."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._discard_task)
        return task

    def _discard_task(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.debug("a background task failed: %r", task.exception())

    async def wait_for(self, work: "asyncio.Task[T]", disconnect: "asyncio.Task[None]") -> T:
        """Wait for a task and return its result.

        Raises Draining if the server shuts down first, and BadRequest if the client disconnects first. The task itself
        then continues.
        """
        drained = asyncio.create_task(self._drained.wait())
        try:
            await asyncio.wait({work, drained, disconnect}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            drained.cancel()
        if not work.done() and disconnect.done():
            raise BadRequest("the client disconnected before its answer was there")
        if not work.done():
            raise Draining("the server is shutting down before the answer is there: ask again in a moment")
        return work.result()

    def format(self, name: str | None, root: str = "") -> Format:
        """Return a format by name, or the default format. `root` is the prefix of its links. Raises UnknownFormat."""
        wanted = name or self.settings.server.default_format
        if wanted not in self._dialects:
            known = ", ".join(sorted(self._dialects))
            raise UnknownFormat(f"there is no format {wanted[:50]!r}; there are: {known}", path="format")
        return Format(wanted, self._dialects[wanted], root)

    def reserve_stream(self, owner: str) -> AbstractContextManager[None]:
        """Return a context manager that counts as an open stream of the owner. Raises TooManyStreams.

        It covers a socket that is being opened, and a request that waits for its complete answer.
        """
        self._check_streams(owner)
        return self.hub.reserve_viewer(owner)

    def stream_viewer(self, ref: SessionRef, format_: Format) -> Viewer:
        """Return a viewer for a new stream. Raises TooManyStreams.

        The viewer counts toward the limit only once it is entered, so enter it before the next `await`.
        """
        self._check_streams(ref.owner)
        return self.viewer(ref, format_)

    def _check_streams(self, owner: str) -> None:
        self.quota.check_streams(owner, self.hub.viewers_of(owner))

    def viewer(self, ref: SessionRef, format_: Format) -> Viewer:
        return Viewer(self.hub, self.store, ref, format_)


def _run_limits(settings: Settings) -> RunLimits:
    return RunLimits(
        run_seconds=settings.limits.run_seconds,
        silence_seconds=settings.limits.silence_seconds,
        approval_seconds=settings.approvals.expiry_seconds,
        result_max=settings.limits.result_bytes,
        session_max=settings.limits.session_bytes,
    )


def _quota(settings: Settings) -> Quota:
    limits = settings.limits
    return Quota(
        runs=limits.runs,
        runs_per_user=limits.runs_per_user,
        waiting_per_user=limits.waiting_per_user,
        sessions_per_user=limits.sessions_per_user,
        streams_per_user=limits.streams_per_user,
    )


def _connection_limits(settings: Settings) -> ConnectionLimits:
    limits = settings.limits
    return ConnectionLimits(
        total=usable_connections(limits.connections),
        per_address=limits.connections_per_address,
        per_user=limits.connections_per_user,
        per_second=limits.connections_per_second,
    )
