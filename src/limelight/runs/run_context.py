"""The context (`ctx`) that a source gets for a turn: user, workspace, cancellation, extra events and approvals."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Unpack

import msgspec

from limelight.events import AnyEvent, ApprovalRequested, ApprovalResolved, Decision
from limelight.ids import now_ms, sortable_id
from limelight.models import Decide, User
from limelight.redaction.rules import Redactor, contains_redacted, restore_redacted
from limelight.runs.engine import Execution
from limelight.runs.store_retry import retry_while_unavailable
from limelight.sources.base import DECISIONS, Approval, ApprovalOptions


class ApprovalCall(msgspec.Struct, frozen=True):
    """The arguments of one call of `ctx.approve`, by which an agent requests an approval."""

    name: str
    args: dict[str, Any]
    call_id: str = ""
    agent_id: str = ""
    decisions: Sequence[Decision] = DECISIONS
    question: str = ""
    answer_schema: dict[str, Any] | None = None
    args_schema: dict[str, Any] | None = None


class LoggedApproval(msgspec.Struct, frozen=True):
    """An approval in the log of a run, with its decision. `resolved` is None if the approval is open."""

    request: ApprovalRequested
    resolved: ApprovalResolved | None = None

    @property
    def is_lost(self) -> bool:
        """Whether the approval must be requested again, because the log lacks the complete edited arguments.

        They contain redacted values, or were too large to be stored.
        """
        if self.resolved is None or self.resolved.decision != "edit":
            return False
        return not isinstance(self.resolved.args, dict) or contains_redacted(self.resolved.args)

    def is_for(self, call: ApprovalCall, redactor: Redactor) -> bool:
        """Whether a call of `ctx.approve` repeats this request: the tool call ids are equal, or else the contents."""
        request = self.request
        if call.call_id or request.call_id:
            return request.call_id == call.call_id
        shown = (call.name, redactor.redact_value(call.args), call.agent_id)
        return (request.name, request.args, request.agent_id) == shown


class RunContext:
    """The context of one turn: implements `sources.base.Context`."""

    def __init__(
        self, execution: Execution, user: User, workspace: Callable[[], Path], logged: Sequence[LoggedApproval] = ()
    ) -> None:
        """Create the context. Call this on the event loop.

        `workspace` returns the folder for the agent's files, and creates it if it does not exist. `logged` are the
        approvals of a reopened run, which its source will request again.
        """
        self._execution = execution
        self._thread = threading.get_ident()
        self._loop = asyncio.get_running_loop()
        self._workspace = workspace
        self._decisions: dict[str, asyncio.Future[ApprovalResolved]] = {}
        self._calls: dict[str, ApprovalCall] = {}
        self._logged = list(logged)
        for approval in logged:  # a decision may come before the source requests the approval again
            if approval.resolved is None:
                self._decisions[approval.request.approval_id] = self._loop.create_future()
        self.user = user

    @property
    def run_id(self) -> str:
        return self._execution.run.run_id

    @property
    def session_id(self) -> str:
        return self._execution.ref.session_id

    @property
    def workspace(self) -> Path:
        return self._workspace()

    @property
    def cancelled(self) -> bool:
        return self._execution.stopping

    def emit(self, event: AnyEvent) -> None:
        if threading.get_ident() == self._thread:
            self._execution.emit_now(event)
        else:
            asyncio.run_coroutine_threadsafe(self._execution.emit_when_ready(event), self._loop).result()

    def approve(
        self, name: str, args: dict[str, Any], **about: Unpack[ApprovalOptions]
    ) -> Coroutine[Any, Any, Approval]:
        """Request an approval, and wait for the decision with `await`. An approval that expires is rejected."""
        if threading.get_ident() != self._thread:
            raise RuntimeError("this runs in a thread of its own, where nothing can be awaited: use approve_blocking")
        return self._approve(ApprovalCall(name, args, **about))

    def approve_blocking(self, name: str, args: dict[str, Any], **about: Unpack[ApprovalOptions]) -> Approval:
        """Request an approval from another thread than the event loop's, and block until the decision."""
        if threading.get_ident() == self._thread:
            raise RuntimeError("this would stop the whole server: use `await ctx.approve(…)`")
        approving = self._approve(ApprovalCall(name, args, **about))
        return asyncio.run_coroutine_threadsafe(approving, self._loop).result()

    async def together(self, *asking: Coroutine[Any, Any, Approval]) -> list[Approval]:
        approvals = await asyncio.gather(*asking)
        self._execution.exclude_wait()
        return approvals

    async def _approve(self, call: ApprovalCall) -> Approval:
        redactor = self._execution.engine.redactor
        logged = next((logged for logged in reversed(self._logged) if logged.is_for(call, redactor)), None)
        if logged is not None:
            self._logged.remove(logged)
        if logged is None or logged.is_lost:
            request, resolved = self._request(call), None
        else:
            request, resolved = logged.request, logged.resolved
        if resolved is None:
            self._calls[request.approval_id] = call
            resolved = await self._decision_on(request)
        args = call.args
        if resolved.answered and isinstance(resolved.args, dict):
            args = resolved.args
        elif resolved.decision == "edit" and isinstance(resolved.args, dict):
            # If the decision came before the approval was requested again, its arguments are still redacted.
            args = restore_redacted(resolved.args, call.args, redactor)
        return Approval(resolved.decision, args, resolved.reason, resolved.by, resolved.answered)

    def _request(self, call: ApprovalCall) -> ApprovalRequested:
        request = ApprovalRequested(
            agent_id=call.agent_id,
            approval_id=sortable_id("apr_"),
            name=call.name,
            args=call.args,
            call_id=call.call_id,
            decisions=tuple(call.decisions),
            question=call.question,
            answer_schema=call.answer_schema,
            args_schema=call.args_schema,
            expires_at=now_ms() + round(self._execution.engine.limits.approval_seconds * 1000),
        )
        self._decisions[request.approval_id] = self._loop.create_future()
        self.emit(request)
        return request

    async def _decision_on(self, request: ApprovalRequested) -> ApprovalResolved:
        """Wait for the decision on an approval and return it. An approval that expires is rejected.

        This uses `asyncio.wait`, because `wait_for` before Python 3.12 loses a cancellation that comes together with
        the decision, and `timeout` loses a decision that comes together with the expiry.
        """
        waiting = self._decisions.setdefault(request.approval_id, self._loop.create_future())
        seconds = None if request.expires_at is None else max(0, request.expires_at - now_ms()) / 1000
        try:
            await asyncio.wait([waiting], timeout=seconds)
            if not waiting.done():
                await self._expire(request)
            return waiting.result()
        finally:
            del self._decisions[request.approval_id]
            self._calls.pop(request.approval_id, None)

    async def _expire(self, request: ApprovalRequested) -> None:
        """Reject an approval that has expired, unless the store already has a decision of a user.

        The rejection is a signal like a user's decision, and the store accepts only the first signal for an approval.
        """
        store = self._execution.engine.store
        expired = Decide(self.run_id, request.approval_id, "reject", reason="expired", by="system")
        await retry_while_unavailable(lambda: store.signal(expired, now=now_ms()))
        for signal in await retry_while_unavailable(lambda: store.signals(self.run_id)):
            if isinstance(signal, Decide):
                self.resolve(signal)
        self.resolve(expired)  # needed only if the store refused the signal because the run has ended or has no owner

    def resolve(self, decision: Decide) -> None:
        """Log a decision on an approval, and pass it to the source that waits for it. Does nothing if none waits."""
        waiting = self._decisions.get(decision.approval_id)
        if waiting is None or waiting.done():
            return
        request = self._execution.grammar.approvals.get(decision.approval_id)
        resolved = ApprovalResolved(
            agent_id=request.agent_id if request is not None else "",
            approval_id=decision.approval_id,
            decision=decision.decision,
            args=self._restored_args(decision) if decision.decision == "edit" else None,
            answered=decision.answered,
            reason=decision.reason,
            by=decision.by,
        )
        self.emit(resolved)
        waiting.set_result(resolved)

    def _restored_args(self, decision: Decide) -> dict[str, Any] | None:
        """Return the arguments of an edit decision, with the original values in place of redaction placeholders."""
        call = self._calls.get(decision.approval_id)
        if call is None or decision.args is None or decision.answered:
            return decision.args
        return restore_redacted(decision.args, call.args, self._execution.engine.redactor)


RunWork = Callable[[Execution, RunContext], Coroutine[Any, Any, None]]
"""A function that does the work of a live run: all of it or, for a reopened run, the part after the decision."""
