"""The execution of one run: from `run_started` to exactly one terminal event.

An Execution drives its source. Events take one path: `emit` checks, redacts and truncates an event, `_append` numbers
it, and `committed` is called when the committer has written it. A run ends in one of five ways: the source finishes,
fails, is stopped, exceeds a limit, or the server shuts down. In each case, everything that is open is closed first, and
later events of the source are dropped. This module must not know dialects, viewers or HTTP.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from time import perf_counter

import msgspec

from limelight.deltas import Delta
from limelight.display_fields import DisplayFields
from limelight.errors import AgentFailed, BadEvent, EndedEarly, LimelightError, LogFull, StoreUnavailable
from limelight.events import (
    EVENT_TYPES,
    TERMINAL_TYPES,
    AnyEvent,
    ArtifactMade,
    FinalAnswer,
    ReasoningDelta,
    Record,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunStarted,
    Status,
    Terminal,
    TextDelta,
    ToolStarted,
)
from limelight.grammar import RUN_ENDED, Grammar, closing_reason
from limelight.ids import now_ms, sortable_id
from limelight.json_values import clean_text
from limelight.log_context import log_fields
from limelight.models import Append, Artifact, Result, Run, RunState, SessionRef, state_after
from limelight.redaction.event_redactor import EventRedactor
from limelight.redaction.rules import DEFAULT_REDACTOR, Redactor
from limelight.runs.committer import Committer, is_large
from limelight.runs.durations import Durations
from limelight.runs.error_message import error_message
from limelight.runs.limits import RunLimits
from limelight.runs.metrics import NO_METRICS, RunMetrics, report_end
from limelight.runs.store_retry import retry_while_unavailable
from limelight.runs.truncation import fit, is_plain
from limelight.runs.unstreamed_texts import UnstreamedTexts
from limelight.runs.watchdog import Watchdog
from limelight.runs.write_buffer import WriteBuffer
from limelight.sources.base import CURRENT, UNSTOPPABLE, FileMade, Item, Turn, with_defaults
from limelight.stores.base import Store

log = logging.getLogger(__name__)

STOP_GRACE = 0.5
"""Seconds that a source has to end after a Stop, and to emit its last events."""
MAX_UNCOMMITTED = 256
"""Number of uncommitted events of a run at which its source has to wait for a commit."""
MAX_EMITTED = 50 * MAX_UNCOMMITTED
"""Number of uncommitted events at which `emit_now`, whose caller cannot wait, raises an error."""
StreamItems = Callable[[Turn], AsyncGenerator[Item, None]]


class Engine(msgspec.Struct, frozen=True):
    """The objects and limits that all executions of this process share."""

    store: Store
    committer: Committer
    limits: RunLimits
    redactor: Redactor = DEFAULT_REDACTOR
    metrics: RunMetrics = NO_METRICS


class Execution:
    """The execution of one run in this process: drives its source, and writes its events to the log."""

    def __init__(
        self,
        engine: Engine,
        run: Run,
        *,
        status: Mapping[str, str] = {},
        streams: bool = True,
        session_bytes: int = 0,
    ) -> None:
        """Create the execution of `run`.

        `status` maps tool names to the status text that is shown when the tool starts. `streams` is False if texts are
        sent complete, without deltas. `session_bytes` is the size of the session when the run begins.
        """
        self.engine = engine
        self.run = run
        self.asked_at: float | None = None
        """Time of the request, for the metric of the first event; None after that, and in reopened runs."""
        self._status = status
        self._bytes_left = engine.limits.session_max - session_bytes
        """Bytes that the run may still add to its session. The run ends when this is negative."""
        self._unstreamed = None if streams else UnstreamedTexts()
        self._redaction = EventRedactor(engine.redactor)
        self._redacts_text = self._redaction.redacts_texts
        self._display_fields = DisplayFields()
        self.grammar = Grammar()
        self._committer = engine.committer
        self._loop = asyncio.get_running_loop()
        self._buffer = WriteBuffer(run.run_id, run.last_seq, run.started_at)
        self._results: list[Result] = []
        self._room = asyncio.Event()
        self._storing = False
        """Whether a file that the source has made is being stored now."""
        self._state: RunState = "running"
        self._durations = Durations()
        self._verdict: asyncio.Future[Terminal] = self._loop.create_future()
        self._suspended: asyncio.Future[None] = self._loop.create_future()
        self._written: asyncio.Future[None] = self._loop.create_future()
        self._watchdog = Watchdog(
            engine.limits.run_seconds,
            engine.limits.silence_seconds,
            busy=lambda: self.grammar.busy or self._waits_for_store,
            on_timeout=lambda error: self.stop(self.failure(error)),
        )

    @property
    def ref(self) -> SessionRef:
        return self.run.ref

    @property
    def stopping(self) -> bool:
        """Whether it is decided how the run ends, even if the source still runs."""
        return self._verdict.done() or self.grammar.terminal is not None

    # Lifecycle

    async def execute(
        self, started: RunStarted | None, stream: StreamItems, prepare: Callable[[], Awaitable[Turn]]
    ) -> None:
        """Execute the run, and return when its terminal event is committed. `started` is None for a reopened run.

        `prepare` makes the turn; `stream` runs the source on it and yields its items.
        """
        try:
            await self._execute(started, stream, prepare)
        except Exception as error:  # a programming error in Limelight; the run must end nevertheless
            if not self.grammar.started:
                self.emit(RunStarted(agent=self.run.agent, turn=self.run.turn))
            self.seal(self.failure(error))
        await self._written

    async def _execute(
        self, started: RunStarted | None, stream: StreamItems, prepare: Callable[[], Awaitable[Turn]]
    ) -> None:
        if started is not None:
            self.emit(started)
        pump = asyncio.create_task(self._pump(stream, prepare), name=f"limelight-{self.run.run_id}")
        self._watchdog.check()
        await asyncio.wait({pump, self._verdict, self._suspended}, return_when=asyncio.FIRST_COMPLETED)
        if not pump.done():
            pump.cancel()
            await asyncio.wait({pump}, timeout=STOP_GRACE)
            if not pump.done():
                self.emit(Status(text=UNSTOPPABLE))
        self._watchdog.stop()
        pump.add_done_callback(_log_late_error)
        if not self._suspended.done():
            self.seal(self._verdict.result() if self._verdict.done() else self._terminal_of(pump))

    async def _pump(self, stream: StreamItems, prepare: Callable[[], Awaitable[Turn]]) -> None:
        turn = await prepare()
        CURRENT.set(turn.context)  # for this task, and for the tasks and threads that it starts
        items = stream(turn)
        try:
            async for item in items:
                if isinstance(item, FileMade):
                    await self._store_file(item)
                else:
                    self.emit(item)
                if self._is_ahead:
                    await self._wait_for_room()
                if self.grammar.terminal is not None or self._bytes_left < 0:
                    return
        except (SystemExit, KeyboardInterrupt) as error:  # an agent that calls exit() ends its run, not the server
            raise AgentFailed(f"{type(error).__name__}: {error}") from error
        finally:
            await items.aclose()

    async def _store_file(self, file: FileMade) -> None:
        """Store a file that the source has made and emit `artifact_made`, or a status if the file cannot be read."""
        try:
            data = await file.read()
            size = memoryview(data).nbytes  # raises TypeError if `data` is not bytes
        except Exception as error:
            self.emit(Status(agent_id=file.agent_id, text=f"The file {file.name} cannot be read: {error}"))
            return
        name, media_type = clean_text(file.name), clean_text(file.media_type)  # the values as they will be in the event
        artifact_id = sortable_id("art_")
        artifact = Artifact(artifact_id=artifact_id, ref=self.ref, name=name, media_type=media_type, body=data)
        if size <= self._bytes_left:  # else the run ends below, because the session is full
            self._storing = True
            await retry_while_unavailable(lambda: self.engine.store.put_artifact(artifact, self.run.run_id))
            self._storing = False
        self._count_bytes(size)
        self.emit(
            ArtifactMade(
                agent_id=file.agent_id,
                artifact_id=artifact_id,
                name=name,
                media_type=media_type,
                size=size,
                call_id=file.call_id,
            )
        )

    def _terminal_of(self, pump: "asyncio.Task[None]") -> Terminal:
        """Return the terminal event of a run whose source has ended: the one the source emitted, or a `run_failed`."""
        if self.grammar.terminal is not None:
            return self.grammar.terminal
        error = AgentFailed("the agent has cancelled its own task") if pump.cancelled() else pump.exception()
        return self.failure(EndedEarly() if error is None else error)

    def failure(self, error: BaseException) -> RunFailed:
        """Log an error that ends the run, and return the `run_failed` event. Both have the same `error_id`."""
        error_id = sortable_id("err_")
        code = error.code if isinstance(error, LimelightError) else AgentFailed.code
        message = error_message(error)
        is_expected = isinstance(error, LimelightError) and error.__cause__ is None
        log.error(
            "run %s failed, %s (%s): %s",
            self.run.run_id,
            error_id,
            code,
            message,
            exc_info=None if is_expected else error,
            extra=log_fields(
                run_id=self.run.run_id, session_id=self.ref.session_id, agent=self.run.agent, error_id=error_id
            ),
        )
        return RunFailed(code=code, message=message, error_id=error_id)

    def reopen(self, records: Sequence[Record]) -> None:
        """Restore the state of a reopened run from its Records."""
        now, now_at = perf_counter(), now_ms()
        for record in records:
            self.grammar.check(record.event)
            self._display_fields.add_to(record.event)
            self._durations.measure(record.event, now - (now_at - record.at) / 1000)
        self._buffer.not_before(records[-1].at)
        self._state = "waiting"
        self._watchdog.pause(self.grammar.waiting)

    def exclude_wait(self) -> None:
        """Restart the durations of open tool calls after all approvals are decided, so that they exclude the wait.

        The durations of calls that run a sub-agent are not restarted.
        """
        calls_of_agents = {agent.call_id for agent in self.grammar.agents.values()}
        self._durations.restart(self.grammar.calls.keys() - calls_of_agents, perf_counter())

    async def suspend(self) -> None:
        """Stop working on a run that waits for a decision, without ending it, so that another process can resume it."""
        while self._buffer.uncommitted:
            await self._next_commit()
        if not self._suspended.done():
            self._suspended.set_result(None)
        if not self._written.done():
            self._written.set_result(None)

    def stop(self, verdict: Terminal) -> None:
        """End the run with this terminal event. Only the first call has an effect."""
        if not self.stopping:
            self._verdict.set_result(verdict)

    def seal(self, terminal: Terminal) -> None:
        """End the log of the run: close open texts, calls and steps, and append the terminal event.

        Does nothing if the run already has a terminal event.
        """
        if self.grammar.terminal is not None:
            return
        for event in self._unstreamed.flush() if self._unstreamed is not None else ():
            self._process(event)
        for event in self._redaction.flush():
            self._append(event)
        succeeded = isinstance(terminal, RunFinished) and self.grammar.answered
        for event in self.grammar.closing_events(closing_reason(terminal), succeeded=succeeded):
            self._append(event)
        if isinstance(terminal, RunFinished) and not self.grammar.answered:
            terminal = self.failure(EndedEarly())
        self._append(terminal)

    # Events

    def store(self, values: Sequence[Result]) -> None:
        """Store values in the results table of the run, with its next commit."""
        if values:
            self._results += values
            self._committer.schedule(self)

    def emit(self, event: AnyEvent) -> None:
        """Append an event of the source to the log, after the events that must precede it. Raises BadEvent.

        An event after the end of the run is dropped.
        """
        if self.grammar.terminal is not None or self._suspended.done() or self._bytes_left < 0:
            return
        self._watchdog.last_event_at = self._loop.time()
        if self._unstreamed is not None:
            for complete in self._unstreamed.feed(event):
                self._process(complete)
        elif (
            # Nine in ten events are deltas of an open text that need no changes. They skip the checks of `_process`.
            isinstance(event, TextDelta | ReasoningDelta)
            and self._is_open(type(event), event.message_id, event.agent_id)
            and is_plain(event.text)
            and (not self._redacts_text or self._redaction.passes(event))
        ):
            if not self._buffer:
                self._committer.schedule(self, can_wait=True)
            self._buffer.append_delta(event)
            self._count_bytes(len(event.text))
        else:
            self._process(event)

    def _is_open(self, kind: type[TextDelta | ReasoningDelta], message_id: object, agent_id: str) -> bool:
        """Whether this agent has an open text or reasoning with this id."""
        opened = self.grammar.texts if kind is TextDelta else self.grammar.reasonings
        return isinstance(message_id, str) and opened.get(message_id) == agent_id

    def _process(self, event: AnyEvent) -> None:
        """Redact an event, and append it to the log after the events that must precede it."""
        if isinstance(event, Delta):
            for part in self._redaction.feed(event):
                self._append(part)
            return
        if not isinstance(event, EVENT_TYPES):
            raise BadEvent(f"a source yields events and files, not {type(event).__name__}")
        if self._verdict.done() and isinstance(event, (*TERMINAL_TYPES, FinalAnswer)):
            return  # the terminal event is already decided
        *held, event = self._redaction.feed(event)
        for part in held:
            self._append(part)
        self._close_before(event)
        self._append(with_defaults(event))
        if isinstance(event, ToolStarted) and event.name in self._status:
            self._append(Status(agent_id=event.agent_id, text=self._status[event.name]))
        self._watchdog.pause(self.grammar.waiting)

    def _close_before(self, event: AnyEvent) -> None:
        """Append the events that must precede `event`: those that end open texts, calls or steps.

        Before them come the rests of texts that redaction has held, because a secret might have continued there.
        """
        missing = self.grammar.missing_before(event, RUN_ENDED)
        rest = [part for ending in missing for part in self._redaction.feed(ending)[:-1]]
        for part in rest:
            self._append(part)
        for ending in self.grammar.missing_before(event, RUN_ENDED) if rest else missing:
            self._append(ending)

    async def emit_when_ready(self, event: AnyEvent) -> None:
        """Wait until the run has fewer than MAX_UNCOMMITTED uncommitted events, then emit an event."""
        await self._wait_for_room()
        self.emit(self._with_open_agent(event))

    def emit_now(self, event: AnyEvent) -> None:
        """Emit an event without waiting for commits.

        If MAX_EMITTED events are uncommitted, raise StoreUnavailable if the store fails, else BadEvent.
        """
        if self._buffer.uncommitted >= MAX_EMITTED:
            if self._committer.failing:
                raise StoreUnavailable(f"{MAX_EMITTED} events wait for the log, which cannot be written now")
            raise BadEvent(f"{MAX_EMITTED} events were emitted without a pause: await something in between")
        self.emit(self._with_open_agent(event))

    def _with_open_agent(self, event: AnyEvent) -> AnyEvent:
        """Return an event unchanged, except the status of a sub-agent that is not open: it becomes the main agent's."""
        if isinstance(event, Status) and event.agent_id not in self.grammar.agents:
            return Status(text=event.text)
        return event

    def _append(self, event: AnyEvent) -> None:
        can_wait = isinstance(event, Delta)
        if not can_wait:
            event = self._durations.measure(event, perf_counter())
        result_max = self.engine.limits.result_max
        fitted = fit(event, self.run.run_id, result_max, self._redaction.redact, self._display_fields.add_to)
        for part in fitted.events:  # the events as they will be logged, so that grammar and log agree
            self.grammar.check(part)
        self._results += fitted.results
        self._count_bytes(fitted.size)
        if not self._buffer or not can_wait:
            self._committer.schedule(self, can_wait=can_wait, must_not_wait=self.grammar.terminal is not None)
        self._buffer.append(fitted.events)

    def _count_bytes(self, size: int) -> None:
        """Count bytes that the run adds to its session. End the run if the session has reached its size limit.

        The terminal event is appended even beyond the limit.
        """
        self._bytes_left -= size
        if self._bytes_left < 0 and not self.stopping:
            limit = f"{self.engine.limits.session_max:,} bytes"
            self.stop(self.failure(LogFull(f"the session would exceed its limit of {limit}: begin a new one")))

    # Commits

    def take(self) -> Append:
        append = Append(run_id=self.run.run_id, records=self._buffer.take(), results=self._results)
        state = _state_of(self.grammar)
        if state != self._state:
            append.state = self._state = state
        self._results = []
        return append

    def committed(self) -> None:
        self._buffer.committed()
        self._room.set()
        self._watchdog.last_event_at = self._loop.time()  # the source may have waited for this commit
        terminal = None if self._buffer.uncommitted else self.grammar.terminal
        has_event = self._buffer.committed_seq - (terminal is not None) > self.run.first_seq  # not only start and end
        if has_event and self.asked_at is not None:
            self.engine.metrics.first_event(self.run.agent, perf_counter() - self.asked_at)
            self.asked_at = None
        if terminal is not None and not self._written.done():
            self._written.set_result(None)
            report_end(self.engine.metrics, self.run.agent, terminal)

    def lease_lost(self) -> None:
        if not self._written.done():
            self._written.set_result(None)
        self.stop(RunCancelled(reason="another process has sealed this run"))

    @property
    def _is_ahead(self) -> bool:
        """Whether the source has to wait for a commit, because too many events or bytes are uncommitted."""
        return self._buffer.uncommitted >= MAX_UNCOMMITTED or (bool(self._results) and is_large(self._results))

    @property
    def _waits_for_store(self) -> bool:
        """Whether the source may be silent because it waits for the store. The watchdog then ignores the silence."""
        return self._storing or self._is_ahead or self._committer.failing

    async def _wait_for_room(self) -> None:
        while self._is_ahead:
            if self._buffer:
                self._committer.schedule(self, must_not_wait=True)
            await self._next_commit()

    async def _next_commit(self) -> None:
        """Wait for the next commit of this run. Several tasks may wait at the same time."""
        self._room.clear()
        await self._room.wait()


def _state_of(grammar: Grammar) -> RunState:
    if grammar.terminal is not None:
        return state_after(grammar.terminal)
    return "waiting" if grammar.waiting else "running"


def _log_late_error(pump: "asyncio.Task[None]") -> None:
    """Log the error of a source that ended after its run had ended."""
    if not pump.cancelled() and pump.exception() is not None:
        log.debug("a source ended late: %r", pump.exception())
