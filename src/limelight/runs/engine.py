"""One run's life: from `run_started` to exactly one terminal event.

An Execution pumps its source, checks each event against the grammar, fits it, numbers it and hands it to the
committer. It ends in one of five ways: the source finishes, fails, is stopped, outlives a limit, or the server goes
away; in each of them whatever is open is closed first. What a source says after that is dropped. It must not know
dialects, viewers or HTTP.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from time import perf_counter

import msgspec

from limelight.deltas import Delta
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
from limelight.grammar import CUT_OFF, Grammar, reason_to_close
from limelight.ids import now_ms, sortable_id
from limelight.json_values import clean_text
from limelight.log_context import ids
from limelight.redaction.events import Redaction
from limelight.redaction.rules import NOTHING_HIDDEN, Hiding
from limelight.runs.byte_budget import Allowance
from limelight.runs.committer import Committer, is_large
from limelight.runs.durations import Durations
from limelight.runs.error_message import told
from limelight.runs.metrics import UNCOUNTED, Measures
from limelight.runs.retry import patiently
from limelight.runs.run_metrics import Meter
from limelight.runs.run_state import state_after
from limelight.runs.truncation import fit, is_plain
from limelight.runs.unstreamed_texts import WholeTexts
from limelight.runs.watchdog import Watchdog
from limelight.runs.write_buffer import Backlog
from limelight.sources.base import CURRENT, UNSTOPPABLE, FileMade, Item, Turn, with_defaults
from limelight.stores.base import Append, Artifact, Result, Run, RunState, SessionRef, Store

log = logging.getLogger(__name__)

STOP_GRACE = 0.5
"""Seconds that a source gets to end by itself once it is stopped, and to say what goes on."""
MAX_UNCOMMITTED = 256
"""Events that a run may be ahead of the log; then its source has to wait. A large result is as much as many events."""
MAX_EMITTED = 50 * MAX_UNCOMMITTED
"""The same for events that are emitted from where nothing can wait."""
Play = Callable[[Turn], AsyncGenerator[Item, None]]


class RunLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long a run may take, and how much of a result is kept."""

    run_seconds: float = 3600
    silence_seconds: float = 300
    approval_seconds: float = 600
    result_max: int = 50 * 1024 * 1024
    session_max: int = 1024**3


class Execution:
    """A live run."""

    def __init__(
        self,
        run: Run,
        store: Store,
        committer: Committer,
        limits: RunLimits,
        *,
        status: Mapping[str, str] = {},
        streams: bool = True,
        hiding: Hiding = NOTHING_HIDDEN,
        session_bytes: int = 0,
        measures: Measures = UNCOUNTED,
    ) -> None:
        self.run = run
        self.limits = limits
        self.meter = Meter(run.agent, measures)
        self._status = status
        self._allowance = Allowance(limits.session_max - session_bytes, self._is_full)
        self._whole = None if streams else WholeTexts()
        self.hiding = hiding
        self._redaction = Redaction(hiding)
        self._listens = self._redaction.listens
        self.grammar = Grammar()
        self._store = store
        self._committer = committer
        self._loop = asyncio.get_running_loop()
        self._backlog = Backlog(run.run_id, run.last_seq, run.started_at)
        self._results: list[Result] = []
        self._room = asyncio.Event()
        self._storing = False
        """Whether a file of its source is on its way into the store."""
        self._state: RunState = "running"
        self._durations = Durations()
        self._verdict: asyncio.Future[Terminal] = self._loop.create_future()
        self._left: asyncio.Future[None] = self._loop.create_future()
        self._written: asyncio.Future[None] = self._loop.create_future()
        self._watchdog = Watchdog(
            limits.run_seconds,
            limits.silence_seconds,
            busy=lambda: self.grammar.busy or self._awaits_the_store,
            bark=lambda error: self.stop(self.failure(error)),
        )

    @property
    def ref(self) -> SessionRef:
        return self.run.ref

    @property
    def stopping(self) -> bool:
        """True once it is decided how the run ends, whether or not the source knows yet."""
        return self._verdict.done() or self.grammar.terminal is not None

    # The life

    async def live(self, started: RunStarted | None, play: Play, prepare: Callable[[], Awaitable[Turn]]) -> None:
        """The whole run, or the rest of one that has `started` before. Returns when its terminal event is in the log.

        `play` is what the source does with the turn; `prepare` gives it what it needs for that.
        """
        try:
            await self._live(started, play, prepare)
        except Exception as error:  # a mistake of ours; the run must not stay open because of it
            if not self.grammar.started:
                self.accept(RunStarted(agent=self.run.agent, turn=self.run.turn))
            self.seal(self.failure(error))
        await self._written

    async def _live(self, started: RunStarted | None, play: Play, prepare: Callable[[], Awaitable[Turn]]) -> None:
        if started is not None:
            self.accept(started)
        pump = asyncio.create_task(self._pump(play, prepare), name=f"limelight-{self.run.run_id}")
        self._watchdog.look()
        await asyncio.wait({pump, self._verdict, self._left}, return_when=asyncio.FIRST_COMPLETED)
        if self._left.done():
            self._watchdog.stop()
            pump.cancel()
            await asyncio.wait({pump}, timeout=STOP_GRACE)
            return
        if not pump.done():
            pump.cancel()
            await asyncio.wait({pump}, timeout=STOP_GRACE)
            if not pump.done() and self.grammar.terminal is None:
                self.accept(Status(text=UNSTOPPABLE))
        self._watchdog.stop()
        pump.add_done_callback(_swallow)
        self.seal(self._verdict.result() if self._verdict.done() else self._ending_of(pump))

    async def _pump(self, play: Play, prepare: Callable[[], Awaitable[Turn]]) -> None:
        turn = await prepare()
        CURRENT.set(turn.context)  # for this task and all that it starts, threads of the frameworks included
        items = play(turn)
        try:
            async for item in items:
                if isinstance(item, FileMade):
                    await self._keep(item)
                else:
                    self.accept(item)
                if self._is_ahead:
                    await self._has_room()
                if self.grammar.terminal is not None:
                    return
        except (SystemExit, KeyboardInterrupt) as error:  # an agent that calls exit() ends its run, not the server
            raise AgentFailed(f"{type(error).__name__}: {error}") from error
        finally:
            await items.aclose()

    async def _keep(self, file: FileMade) -> None:
        """Store a file's bytes, then say that it is there; or that it cannot be read."""
        try:
            data = await file.read()
            size = memoryview(data).nbytes  # what has no bytes is no file, whatever its agent says
        except Exception as error:
            self.accept(Status(agent_id=file.agent_id, text=f"The file {file.name} cannot be read: {error}"))
            return
        name, media_type = clean_text(file.name), clean_text(file.media_type)  # as the event will have them
        artifact_id = sortable_id("art_")
        artifact = Artifact(artifact_id=artifact_id, ref=self.ref, name=name, media_type=media_type, body=data)
        if self._allowance.allows(size):  # if not, the run ends with this file
            self._storing = True
            await patiently(lambda: self._store.put_artifact(artifact, self.run.run_id))
            self._storing = False
        self._allowance.spend(size)
        self.accept(
            ArtifactMade(
                agent_id=file.agent_id,
                artifact_id=artifact_id,
                name=name,
                media_type=media_type,
                size=size,
                call_id=file.call_id,
            )
        )

    def _ending_of(self, pump: "asyncio.Task[None]") -> Terminal:
        """How a source that ended by itself has ended; a terminal event of its own counts first."""
        if self.grammar.terminal is not None:
            return self.grammar.terminal
        error = AgentFailed("the agent's work was cancelled from inside") if pump.cancelled() else pump.exception()
        return self.failure(EndedEarly() if error is None else error)

    def failure(self, error: BaseException) -> RunFailed:
        """The terminal event for an error. Its story goes to the server's log, under the error_id."""
        error_id = sortable_id("err_")
        code = error.code if isinstance(error, LimelightError) else AgentFailed.code
        message = told(error)
        ours = isinstance(error, LimelightError) and error.__cause__ is None
        log.error(
            "run %s failed, %s (%s): %s",
            self.run.run_id,
            error_id,
            code,
            message,
            exc_info=None if ours else error,
            extra=ids(run_id=self.run.run_id, session_id=self.ref.session_id, agent=self.run.agent, error_id=error_id),
        )
        return RunFailed(code=code, message=message, error_id=error_id)

    def reopen(self, records: Sequence[Record]) -> None:
        """Be the run that these Records tell of, which waits for a person."""
        now, now_at = perf_counter(), now_ms()
        for record in records:
            self.grammar.check(record.event)
            self._durations.timed(record.event, now - (now_at - record.at) / 1000)
        self._backlog.not_before(records[-1].at)
        self._state = "waiting"
        self._watchdog.pause(self.grammar.waiting)

    def go_on(self) -> None:
        """All that was asked is answered, and the agent stood still meanwhile, but for calls that are sub-agents."""
        at_work = {agent.call_id for agent in self.grammar.agents.values()}
        self._durations.stood_still(self.grammar.calls.keys() - at_work, perf_counter())

    async def leave(self) -> None:
        """The process ends and the run stays as it is, waiting: another process will go on with it."""
        while self._backlog.uncommitted:
            await self._next_commit()
        if not self._left.done():
            self._left.set_result(None)
        if not self._written.done():
            self._written.set_result(None)

    def stop(self, verdict: Terminal) -> None:
        """End the run in this way. The first word counts."""
        if not self.stopping:
            self._verdict.set_result(verdict)

    def seal(self, terminal: Terminal) -> None:
        """Close what is open and write the terminal event, unless the source has done so itself."""
        if self.grammar.terminal is not None:
            return
        for event in self._whole.rest() if self._whole is not None else ():
            self._take_in(event)
        for event in self._redaction.rest():
            self._write(event)
        succeeded = isinstance(terminal, RunFinished) and self.grammar.answered
        for event in self.grammar.closing(reason_to_close(terminal), succeeded=succeeded):
            self._write(event)
        if isinstance(terminal, RunFinished) and not self.grammar.answered:
            terminal = self.failure(EndedEarly())
        self._write(terminal)

    # What comes in

    def keep(self, values: Sequence[Result]) -> None:
        """Store these with the run."""
        if values:
            self._results += values
            self._committer.mark(self)

    def accept(self, event: AnyEvent) -> None:
        """One event of the source, with whatever has to come before it. Raises BadEvent; drops what comes too late."""
        if self.grammar.terminal is not None or self._left.done() or self._allowance.is_spent:
            return
        self._watchdog.heard = self._loop.time()
        if self._whole is None:
            self._take_in(event)
            return
        for whole in self._whole.feed(event):
            self._take_in(whole)

    def _take_in(self, event: AnyEvent) -> None:
        if (piece := self._piece(event)) is not None and (not self._listens or self._redaction.passes(piece)):
            if not self._backlog:
                self._committer.mark(self, can_wait=True)
            self._backlog.say(piece)
            self._allowance.spend(len(piece.text))
            return
        if isinstance(event, Delta):
            for part in self._redaction.feed(event):
                self._write(part)
            return
        if not isinstance(event, EVENT_TYPES):
            raise BadEvent(f"a source yields events and files, not {type(event).__name__}")
        if self._verdict.done() and isinstance(event, (*TERMINAL_TYPES, FinalAnswer)):
            return  # how the run ends is decided, and the first cause counts
        *held, event = self._redaction.feed(event)
        for part in held:
            self._write(part)
        self._close_before(event)
        self._write(with_defaults(event))
        if isinstance(event, ToolStarted) and event.name in self._status:
            self._write(Status(agent_id=event.agent_id, text=self._status[event.name]))
        self._watchdog.pause(self.grammar.waiting)

    def _close_before(self, event: AnyEvent) -> None:
        """Write whatever has to end before this event, and first what was held back of it."""
        missing = self.grammar.missing_before(event, CUT_OFF)
        rest = [part for ending in missing for part in self._redaction.feed(ending)[:-1]]
        for part in rest:
            self._write(part)
        for ending in self.grammar.missing_before(event, CUT_OFF) if rest else missing:
            self._write(ending)

    async def accept_in_turn(self, event: AnyEvent) -> None:
        """As `accept`, but a source that is far ahead of the log has to wait."""
        await self._has_room()
        self.accept(self._placed(event))

    def accept_at_once(self, event: AnyEvent) -> None:
        """As `accept`, for callers that cannot wait: who never gives way is stopped before memory runs out."""
        if self._backlog.uncommitted >= MAX_EMITTED:
            if self._committer.failing:
                raise StoreUnavailable(f"{MAX_EMITTED} events wait for the log, which cannot be written now")
            raise BadEvent(f"{MAX_EMITTED} events were emitted without a pause: await something in between")
        self.accept(self._placed(event))

    def _placed(self, event: AnyEvent) -> AnyEvent:
        """A line that a tool emits may overtake the start of its agent, or outlive its end: then the main agent's."""
        if isinstance(event, Status) and event.agent_id not in self.grammar.agents:
            return Status(text=event.text)
        return event

    def _write(self, event: AnyEvent) -> None:
        if not isinstance(event, Delta):
            event = self._durations.timed(event, perf_counter())
        fitted = fit(event, self.run.run_id, self.limits.result_max, self._redaction.whole)
        for part in fitted.events:  # what the log will have, so that the two never differ
            self.grammar.check(part)
        self._results += fitted.results
        self._allowance.spend(fitted.size)
        self._number(fitted.events, can_wait=isinstance(event, Delta))

    def _is_full(self) -> None:
        """There is no room for more of the session, so the run ends; its end always fits."""
        if not self.stopping:
            limit = f"{self.limits.session_max:,} bytes"
            self.stop(self.failure(LogFull(f"more than {limit} would be kept of this session: begin a new one")))

    def _piece(self, event: AnyEvent) -> TextDelta | ReasoningDelta | None:
        """The event, if it is one more plain piece of an open text: nine in ten are, and nothing is to be done."""
        if type(event) is TextDelta:
            opened = self.grammar.texts
        elif type(event) is ReasoningDelta:
            opened = self.grammar.reasonings
        else:
            return None
        known = type(event.message_id) is str and opened.get(event.message_id) == event.agent_id
        return event if known and is_plain(event.text) else None

    def _number(self, events: Sequence[AnyEvent], *, can_wait: bool) -> None:
        if not self._backlog or not can_wait:
            self._committer.mark(self, can_wait=can_wait)
        self._backlog.add(events)

    # What goes out

    def take(self) -> Append:
        append = Append(run_id=self.run.run_id, records=self._backlog.take(), results=self._results)
        state = _state_of(self.grammar)
        if state != self._state:
            append.state = self._state = state
        self._results = []
        return append

    def committed(self, append: Append) -> None:
        self._backlog.committed()
        self._room.set()
        self._watchdog.heard = self._loop.time()  # it may have been silent because it waited for this
        if append.state in ("finished", "failed", "cancelled") and not self._written.done():
            self._written.set_result(None)
        self.meter.committed(append)

    def lost(self) -> None:
        if not self._written.done():
            self._written.set_result(None)
        self.stop(RunCancelled(reason="another process has sealed this run"))

    @property
    def _is_ahead(self) -> bool:
        return self._backlog.uncommitted >= MAX_UNCOMMITTED or (bool(self._results) and is_large(self._results))

    @property
    def _awaits_the_store(self) -> bool:
        """Whether the source may be silent because of the store, and not by itself."""
        return self._storing or self._is_ahead or self._committer.failing

    async def _has_room(self) -> None:
        while self._is_ahead:
            if self._backlog:
                self._committer.mark(self)
            await self._next_commit()

    async def _next_commit(self) -> None:
        """Several may wait at once: the source, and threads that emit."""
        self._room.clear()
        await self._room.wait()


def _state_of(grammar: Grammar) -> RunState:
    if grammar.terminal is not None:
        return state_after(grammar.terminal)
    return "waiting" if grammar.waiting else "running"


def _swallow(pump: "asyncio.Task[None]") -> None:
    """A source that ends after its run has ended has nobody left to tell."""
    if not pump.cancelled() and pump.exception() is not None:
        log.debug("a source ended late: %r", pump.exception())
