"""Runs that are legal by the documented rules, made up at random.

`RunBuilder` keeps its own account of what is open and must not ask the grammar, which it tests.
"""

from collections.abc import Callable, Iterable
from random import Random

import msgspec

from limelight.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    ArtifactMade,
    Decision,
    FinalAnswer,
    OutputStream,
    Plan,
    PlanDelta,
    ReasoningDelta,
    ReasoningFinished,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunStarted,
    SourceCited,
    Status,
    StepFinished,
    StepStarted,
    TextDelta,
    TextFinished,
    Todo,
    ToolArgsDelta,
    ToolFinished,
    ToolOutputDelta,
    ToolReady,
    ToolStarted,
    Usage,
)

CODE_PIECES = ('{"code": "', '{"x": [1], "code": "', "x = 1\\n", "\\", "\\ud83d", "\\ude00", "é```", '"', "}", "")
"""Pieces of the arguments of a call that runs Python code, which may make valid JSON."""
ODD_TEXTS = (
    "",
    "a",
    "plain words ",
    "\n",
    'quote " and \\ backslash',
    "\x00\x1b[31m\x7f",
    "\u2028\u2029\ufeff",
    "e\u0301 ﷽ \u202eright to left",
    "👩‍👩‍👧 🇩🇪",
    "data: x\n\nid: 7\nevent: y\n\n",
    "</details><script>",
    "長い文" * 9,
)
"""Texts that have broken wires before: controls, line separators, joined emoji, SSE inside text."""

ODD_ANSWERS = (
    "{'content': ...}",
    r'{"content": "\ud800 x"}',
    r'{"title": "\udfff", "content": "x"}',
    "{'content': 1j}",
    "{'content': {(1, 2): 3}}",
    "{'content': 'x', 'sources': [...]}",
    "{'content': b'x', 'sources': {1, 2}}",
    '{"content": 1e999}',
    '{"content": null, "sources": "https://example.org/"}',
    '{"title": "alone"}',
    '```json\n{"title": [1], "content": {"a": 1}, "sources": [null, {}]}\n```',
    "Final answer: {'title': None, 'content': 'x'}",
    "{" * 500 + "}" * 500,
)
"""Answers that look like objects of which JSON has no form, or an odd one."""

START = 1_700_000_000_000


class _Call(msgspec.Struct):
    agent_id: str
    ready: bool
    is_python: bool = False
    args_text: str = ""
    approval_id: str = ""


class _Agent(msgspec.Struct, frozen=True):
    parent_id: str
    call_id: str


class RunBuilder:
    """Writes one legal run, choosing at random among all that is legal at each point."""

    def __init__(self, random: Random) -> None:
        self.events: list[AnyEvent] = [RunStarted(agent="demo", input=random.choice(ODD_TEXTS))]
        self._random = random
        self._count = 0
        self._agents: dict[str, _Agent] = {}
        self._texts: dict[str, str] = {}
        self._reasonings: dict[str, str] = {}
        self._calls: dict[str, _Call] = {}
        self._steps: dict[str, StepStarted] = {}
        self._approvals: dict[str, ApprovalRequested] = {}
        self._main_message: str | None = None

    def add_event(self) -> None:
        """Append one more event, of any kind that is legal here."""
        actions = [
            self._say,
            self._say,
            self._think,
            self._mention,
            self._start_tool,
            self._start_agent,
            self._ask,
            self._use_tool,
            self._use_tool,
            self._step,
            self._end_something,
        ]
        self._random.choice(actions)()

    def close_all(self) -> None:
        """End what is open, in any order that is legal."""
        while self._end_something():
            pass

    def end(self) -> None:
        """An answer and a terminal event."""
        self.close_all()
        kind = self._random.choice(["finished", "finished", "failed", "cancelled"])
        if kind == "finished" or self._random.random() < 0.5:
            message_id = self._random.choice([self._main_message, None])
            content = self._random.choice([self._text(), self._random.choice(ODD_ANSWERS), {"a": 1}])
            self.events.append(FinalAnswer(content=content, message_id=message_id))
        match kind:
            case "finished":
                self.events.append(RunFinished(code=self._random.choice(["", "max_steps"])))
            case "failed":
                self.events.append(RunFailed(code="agent_error", message=self._text(), error_id="err_1"))
            case _:
                self.events.append(RunCancelled(reason=self._text()))

    def _text(self) -> str:
        return self._random.choice(ODD_TEXTS)

    def _new_id(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def _someone(self) -> str:
        return self._random.choice(["", *self._agents])

    def _say(self) -> None:
        agent_id = self._someone()
        open_ = [m for m, owner in self._texts.items() if owner == agent_id]
        message_id = self._random.choice([*open_, *open_, self._new_id("m")])
        self._texts[message_id] = agent_id
        if not agent_id:
            self._main_message = message_id
        self.events.append(TextDelta(agent_id=agent_id, message_id=message_id, text=self._text()))

    def _think(self) -> None:
        agent_id = self._someone()
        open_ = [m for m, owner in self._reasonings.items() if owner == agent_id]
        message_id = self._random.choice([*open_, *open_, self._new_id("m")])
        self._reasonings[message_id] = agent_id
        self.events.append(ReasoningDelta(agent_id=agent_id, message_id=message_id, text=self._text()))

    def _mention(self) -> None:
        """Something that opens and closes nothing."""
        agent_id, text = self._someone(), self._text()
        made = ArtifactMade(
            agent_id=agent_id, artifact_id=self._new_id("art"), name=text, media_type="text/plain", size=3
        )
        choices: list[AnyEvent] = [
            Status(agent_id=agent_id, text=text),
            PlanDelta(agent_id=agent_id, text=text, update=self._random.random() < 0.2),
            Plan(agent_id=agent_id, text=text, update=self._random.random() < 0.5),
            Plan(agent_id=agent_id, items=(Todo(text), Todo("next", "in_progress"))),
            Usage(agent_id=agent_id, model="m", input_tokens=1, output_tokens=2),
            SourceCited(agent_id=agent_id, title=text, url="https://example.org/", text=text),
            made,
        ]
        self.events.append(self._random.choice(choices))

    def _start_tool(self) -> None:
        agent_id, call_id = self._someone(), self._new_id("c")
        args = self._random.choice([None, {}, {"q": self._text()}, "{not json"])
        name = self._random.choice([self._text() or "t", "python"])
        self._calls[call_id] = _Call(agent_id, args is not None, name == "python")
        self.events.append(ToolStarted(agent_id=agent_id, call_id=call_id, name=name, args=args))

    def _use_tool(self) -> None:
        """Continue an open call, if there is one: with arguments, as ready, or with output."""
        usable = [c for c, call in self._calls.items() if not call.approval_id]
        if not usable:
            self._start_tool()
            return
        call_id = self._random.choice(usable)
        call, text = self._calls[call_id], self._text()
        if call.ready:
            stream: OutputStream = self._random.choice(["stdout", "stderr"])
            self.events.append(ToolOutputDelta(agent_id=call.agent_id, call_id=call_id, text=text, stream=stream))
        elif self._random.random() < 0.7:
            text = self._random.choice(CODE_PIECES) if call.is_python else text
            call.args_text += text
            self.events.append(ToolArgsDelta(agent_id=call.agent_id, call_id=call_id, text=text))
        else:
            self._make_ready(call_id)

    def _make_ready(self, call_id: str) -> None:
        call = self._calls[call_id]
        call.ready = True
        other = {"code" if call.is_python else "q": self._text()}
        args = self._random.choice([call.args_text, other, {"code": "x = 1\nx = 1\n"}])
        self.events.append(ToolReady(agent_id=call.agent_id, call_id=call_id, args=args))

    def _start_agent(self) -> None:
        """A sub-agent, at any depth, spawned by an open call of its parent or by none."""
        if len(self._agents) >= 5:
            return
        parent_id = self._someone()
        calls = [c for c, call in self._calls.items() if call.agent_id == parent_id]
        call_id = self._random.choice(["", *calls, *calls])
        agent_id = self._new_id("a")
        self._agents[agent_id] = _Agent(parent_id, call_id)
        self.events.append(AgentStarted(agent_id=agent_id, parent_id=parent_id, call_id=call_id, name=self._text()))

    def _ask(self) -> None:
        """An approval, for a call that is ready and not yet waiting, or for something else."""
        agent_id = self._someone()
        calls = [c for c, v in self._calls.items() if v.agent_id == agent_id and v.ready and not v.approval_id]
        call_id = self._random.choice(["", *calls, *calls])
        request = ApprovalRequested(
            agent_id=agent_id, approval_id=self._new_id("ap"), name="rm", args={"path": self._text()}, call_id=call_id
        )
        self._approvals[request.approval_id] = request
        if call_id:
            self._calls[call_id].approval_id = request.approval_id
        self.events.append(request)

    def _step(self) -> None:
        agent_id = self._someone()
        if agent_id not in self._steps:
            kind = self._random.choice(["action", "action", "planning", "write_report"])
            self._steps[agent_id] = StepStarted(agent_id=agent_id, number=len(self.events), step_kind=kind)
            self.events.append(self._steps[agent_id])

    def _end_something(self) -> bool:
        """Close one thing that may be closed now. False if nothing is open."""
        endings = [
            *self._endings(self._texts, self._finish_text),
            *self._endings(self._reasonings, self._finish_reasoning),
            *self._endings(self._steps, self._finish_step),
            *self._endings(self._approvals, self._resolve),
            *self._endings([c for c, call in self._calls.items() if not call.ready], self._make_ready),
            *self._endings([c for c in self._calls if self._may_finish_call(c)], self._finish_tool),
            *self._endings([a for a in self._agents if self._may_finish_agent(a)], self._finish_agent),
        ]
        if not endings:
            return False
        self._random.choice(endings)()
        return True

    @staticmethod
    def _endings(ids: Iterable[str], end: Callable[[str], None]) -> list[Callable[[], None]]:
        return [lambda id_=id_: end(id_) for id_ in ids]

    def _may_finish_call(self, call_id: str) -> bool:
        call = self._calls[call_id]
        spawned = any(agent.call_id == call_id for agent in self._agents.values())
        return call.ready and not call.approval_id and not spawned

    def _may_finish_agent(self, agent_id: str) -> bool:
        owners = [
            *self._texts.values(),
            *self._reasonings.values(),
            *self._steps,
            *(call.agent_id for call in self._calls.values()),
            *(request.agent_id for request in self._approvals.values()),
            *(agent.parent_id for agent in self._agents.values()),
        ]
        return agent_id not in owners

    def _finish_text(self, message_id: str) -> None:
        self.events.append(TextFinished(agent_id=self._texts.pop(message_id), message_id=message_id))

    def _finish_reasoning(self, message_id: str) -> None:
        self.events.append(ReasoningFinished(agent_id=self._reasonings.pop(message_id), message_id=message_id))

    def _finish_step(self, agent_id: str) -> None:
        step = self._steps.pop(agent_id)
        self.events.append(StepFinished(agent_id=agent_id, number=step.number, step_kind=step.step_kind))

    def _resolve(self, approval_id: str) -> None:
        request = self._approvals.pop(approval_id)
        if request.call_id:
            self._calls[request.call_id].approval_id = ""
        decision: Decision = self._random.choice(["approve", "edit", "reject"])
        args = {"path": self._text()} if decision == "edit" else None
        resolved = ApprovalResolved(
            agent_id=request.agent_id, approval_id=approval_id, decision=decision, args=args, by="someone"
        )
        self.events.append(resolved)

    def _finish_tool(self, call_id: str) -> None:
        agent_id = self._calls.pop(call_id).agent_id
        error = self._random.choice([None, None, "it broke"])
        result = self._random.choice([self._text(), {"rows": [1, 2]}, 7]) if error is None else f"Error: {error}"
        self.events.append(ToolFinished(agent_id=agent_id, call_id=call_id, result=result, error=error, duration_ms=5))

    def _finish_agent(self, agent_id: str) -> None:
        del self._agents[agent_id]
        self.events.append(AgentFinished(agent_id=agent_id, error=self._random.choice([None, "it broke"])))


def write_run(random: Random, length: int) -> list[AnyEvent]:
    """A whole legal run with about `length` events before everything is closed."""
    builder = RunBuilder(random)
    while len(builder.events) < length:
        builder.add_event()
    builder.end()
    return builder.events
