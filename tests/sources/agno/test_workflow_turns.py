"""Agno: workflows over several turns: memory, stops, approvals, and runs that wait over a restart."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# Agno's own types are partly unknown.

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agno.db.sqlite import SqliteDb
from agno.run import RunContext
from agno.workflow.condition import Condition
from agno.workflow.loop import Loop
from agno.workflow.router import Router
from agno.workflow.step import Step
from agno.workflow.types import HumanReview, OnError, OnReject, StepInput
from agno.workflow.workflow import Workflow
from pydantic import BaseModel

from limelight import status
from limelight.events import ApprovalRequested, RunCancelled, RunFailed, Status, StepFinished, StepStarted
from tests.sources.agno.agno_scenarios import DANGER, HELPER, answering, calling, plain, team
from tests.sources.agno.scripts import REMEMBER
from tests.sources.agno.workflow_scenarios import prepare, side_by_side, spell, workflow
from tests.sources.conformance import ANSWER
from tests.sources.live_turn import (
    FinishedRun,
    ModelEndpoint,
    checked_run,
    record_of,
    run_agent,
    serve_agent,
    status_is,
)
from tests.sources.recorded_requests import Requests, conversation_in
from tests.support.server import Frame, collect
from tests.support.wait import eventually

pytestmark = pytest.mark.usefixtures("agno_models")


# Memory


def remembering(endpoint: ModelEndpoint, **options: Any) -> Workflow:
    return workflow(plain(endpoint), **options)


@pytest.mark.requirement("agno-workflows")
@pytest.mark.parametrize("is_inside", [False, True], ids=["step", "container"])
async def test_session_continues_and_other_sessions_are_isolated(
    is_inside: bool, tmp_path: Path, requests: Requests
) -> None:
    def make(endpoint: ModelEndpoint) -> Workflow:
        return workflow(Condition(steps=[plain(endpoint)])) if is_inside else remembering(endpoint)

    async with serve_agent(make, REMEMBER, tmp_path) as server:
        await server.run("my name is Ada", session_id="a")
        for _ in range(4):  # more turns than Agno remembers by itself
            await server.run("and?", session_id="a")
        await server.run("who am I?", session_id="b")
    assert "User input: my name is Ada" in str(requests[-2]["messages"])
    assert conversation_in(requests[-1]) == [("user", "who am I?")]


async def test_session_continues_after_a_restart(tmp_path: Path, requests: Requests) -> None:
    for question in ("my name is Ada", "who am I?"):
        async with serve_agent(remembering, REMEMBER, tmp_path) as server:
            await server.run(question, session_id="a")
    assert "Hello Ada." in str(requests[-1]["messages"])


async def test_history_of_a_request_is_used(tmp_path: Path, requests: Requests) -> None:
    past = [{"role": "user", "content": "my cat is Tom"}, {"role": "assistant", "content": "Hello Tom."}]
    async with serve_agent(remembering, REMEMBER, tmp_path) as server:
        await server.run(messages=[*past, {"role": "user", "content": "who is it?"}], session_id="a")
        await server.run("and now?", session_id="a")
    assert all("Hello Tom." in str(request["messages"]) for request in requests)


async def test_own_database_and_its_history_setting_stay(tmp_path: Path, requests: Requests) -> None:
    db = SqliteDb(db_file=str(tmp_path / "own.db"))
    async with serve_agent(lambda endpoint: remembering(endpoint, db=db), REMEMBER, tmp_path) as server:
        for question in ("my name is Ada", "who am I?"):
            await server.run(question, session_id="a")
    assert conversation_in(requests[-1]) == [("user", "who am I?")]
    db.close()


def count_turn(step_input: StepInput, run_context: RunContext) -> str:
    state = run_context.session_state
    assert state is not None
    state["turns"] = state.get("turns", 0) + 1
    return f"turn {state['turns']} of {state['owner']}"


async def test_session_state_is_kept_per_session(tmp_path: Path) -> None:
    flow = workflow(count_turn, session_state={"owner": "Ada"})
    async with serve_agent(lambda _: flow, "", tmp_path) as server:
        answers = [(await server.run("go", session_id=session)).answer for session in ("a", "a", "b")]
    assert answers == ["turn 1 of Ada", "turn 2 of Ada", "turn 1 of Ada"]
    assert flow.session_state == {"owner": "Ada"}


async def test_system_messages_reach_the_agents_for_one_turn(tmp_path: Path, requests: Requests) -> None:
    brief = {"role": "system", "content": "Be brief."}
    async with serve_agent(remembering, REMEMBER, tmp_path) as server:
        await server.run(messages=[brief, {"role": "user", "content": "hi?"}], session_id="a")
        await server.run("again?", session_id="a")
    assert "Be brief." in str(requests[0]["messages"]) and "Be brief." not in str(requests[1]["messages"])


class Topic(BaseModel):
    name: str
    pages: int = 1


async def test_question_that_is_an_object_fits_the_input_schema(tmp_path: Path) -> None:
    def tell(step_input: StepInput) -> str:
        assert isinstance(step_input.input, Topic)
        return f"{step_input.input.pages} pages about {step_input.input.name}"

    run = await run_agent(lambda _: workflow(tell, input_schema=Topic), "", tmp_path, '{"name": "bees", "pages": 3}')
    assert run.answer == "3 pages about bees"


# Stop


def waiting(ended: list[str]) -> Callable[[], Any]:
    async def wait() -> str:
        """Wait."""
        try:
            status("waiting")
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            ended.append("wait")
            raise
        return ""

    return wait


@pytest.mark.parametrize("place", ["step", "branch", "function", "nested"])
async def test_stop_ends_all_that_runs(place: str, tmp_path: Path) -> None:
    ended: list[str] = []
    wait = waiting(ended)

    async def wait_here(step_input: StepInput) -> str:
        return await wait()

    def make(endpoint: ModelEndpoint) -> Workflow:
        step = Step(name="act", agent=plain(endpoint, tools=[wait]))
        if place == "branch":
            return workflow(side_by_side("both", step, side_by_side("inner", step, spell)))
        if place == "function":
            return workflow(wait_here)
        return workflow(workflow(step, name="inner")) if place == "nested" else workflow(step)

    async with serve_agent(make, answering(calling("wait", "{}")), tmp_path) as server:
        run = await server.run_until(status_is("waiting"), session_id="a")
        assert isinstance(run.terminal, RunCancelled)
        await eventually(lambda: len(ended) == (2 if place == "branch" else 1))


async def test_function_that_cannot_be_interrupted_is_named(tmp_path: Path) -> None:
    may_end = threading.Event()

    def snore(step_input: StepInput) -> str:
        status("snoring")
        may_end.wait(10)
        return "rested"

    async with serve_agent(lambda _: workflow(snore), "", tmp_path) as server:
        try:
            run = await server.run_until(status_is("snoring"))
        finally:
            may_end.set()
    assert isinstance(run.terminal, RunCancelled)
    assert any(text.startswith("The tool snore cannot be interrupted") for text in (s.text for s in run.all(Status)))


async def test_turn_after_a_stop_works(tmp_path: Path) -> None:
    async with serve_agent(remembering, REMEMBER, tmp_path) as server:
        await server.run_until(lambda event: isinstance(event, StepStarted), question="wait for me", session_id="a")
        assert (await server.run("and now?", session_id="a")).answer == "I see."


async def test_ordinary_functions_do_not_block_the_server(tmp_path: Path) -> None:
    blocked, released = threading.Semaphore(0), threading.Semaphore(0)

    def wait_for_the_loop() -> bool:
        """Block until the event loop has released this function; False if the loop is blocked."""
        blocked.release()
        return released.acquire(timeout=10)

    def nap(step_input: StepInput) -> str:
        return f"rested: {wait_for_the_loop()}"

    def naps(step_input: StepInput) -> Any:
        yield f"{step_input.previous_step_content}, {wait_for_the_loop()}"

    def is_ready(step_input: StepInput) -> bool:
        return wait_for_the_loop()

    async def release() -> None:
        while True:
            if blocked.acquire(blocking=False):
                released.release()
            await asyncio.sleep(0.01)

    releasing = asyncio.create_task(release())
    run = await run_agent(lambda _: workflow(nap, Condition(evaluator=is_ready, steps=[naps])), "", tmp_path)
    releasing.cancel()
    assert run.answer == "rested: True, True"


# Approvals


def decide(decision: str, **fields: Any) -> Callable[[ApprovalRequested], dict[str, Any]]:
    return lambda _: {"decision": decision, **fields}


async def test_tool_in_a_container_waits_and_the_next_step_runs(tmp_path: Path) -> None:
    def make(endpoint: ModelEndpoint) -> Workflow:
        inner = Condition(name="check", evaluator=True, steps=[Step(name="act", agent=plain(endpoint))])
        return workflow(inner, prepare)

    run = await run_agent(make, DANGER, tmp_path, decide=decide("approve"))
    assert run.call("danger").result == "/tmp/x is gone"
    assert [s.step_kind for s in run.all(StepStarted, agent_id="")] == ["check", "prepare"]
    assert run.answer == "prepared: go"


async def test_member_of_a_team_in_a_step_waits(tmp_path: Path) -> None:
    run = await run_agent(
        lambda endpoint: workflow(team(endpoint)),
        HELPER % ("danger", "{path: /tmp/x}"),
        tmp_path,
        decide=decide("approve"),
    )
    assert run.call("danger").result == "/tmp/x is gone"
    assert run.one(ApprovalRequested).agent_id == run.agent("helper").agent_id
    assert run.answer == ANSWER


def confirming(**options: Any) -> Step:
    review = HumanReview(requires_confirmation=True, confirmation_message="Really?", **options)
    return Step(name="spell", executor=spell, human_review=review)


@pytest.mark.parametrize(
    ("decision", "options", "answer"),
    [
        ("approve", {}, "one two"),
        ("reject", {}, "prepared: go"),
        ("reject", {"on_reject": OnReject.cancel}, None),
    ],
)
async def test_step_is_confirmed(decision: str, options: dict[str, Any], answer: str | None, tmp_path: Path) -> None:
    run = await run_agent(lambda _: workflow(prepare, confirming(**options)), "", tmp_path, decide=decide(decision))
    asked = run.one(ApprovalRequested)
    assert (asked.name, asked.args, asked.decisions) == ("spell", {"message": "Really?"}, ("approve", "reject"))
    if answer is None:
        assert isinstance(run.terminal, RunCancelled) and "was rejected" in run.terminal.reason
    else:
        assert run.answer == answer


def asking(*fields: dict[str, Any]) -> Step:
    def tell(step_input: StepInput) -> Any:
        return f"got {(step_input.additional_data or {}).get('user_input')}"

    review = HumanReview(requires_user_input=True, user_input_message="Tell me", user_input_schema=list(fields))
    return Step(name="tell", executor=tell, human_review=review)


async def test_step_gets_its_input_and_asks_again_if_it_is_not_valid(tmp_path: Path) -> None:
    fields = [{"name": "city", "field_type": "str", "required": True}, {"name": "days", "field_type": "int"}]
    given = iter([{"city": "", "days": "2"}, {"city": "Rome", "days": "2"}])
    run = await run_agent(
        lambda _: workflow(asking(*fields)),
        "",
        tmp_path,
        decide=lambda _: {"decision": "edit", "args": next(given)},
    )
    first, second = run.all(ApprovalRequested)
    assert (first.args, first.decisions) == ({"message": "Tell me", "city": "", "days": ""}, ("edit", "reject"))
    assert isinstance(second.args, dict) and "city" in second.args["error"]
    assert run.answer == "got {'city': 'Rome', 'days': 2}"


async def test_input_of_a_step_is_a_form_of_its_fields(tmp_path: Path) -> None:
    step = asking(
        {"name": "city", "field_type": "str", "required": True, "description": "Where to"},
        {"name": "days", "field_type": "int", "required": False},
        {"name": "class", "field_type": "str", "required": False, "allowed_values": ["first", "second"]},
    )
    answer = {"city": "Rome", "days": 2, "class": "second"}
    run = await run_agent(lambda _: workflow(step), "", tmp_path, decide=decide("respond", answer=answer))
    asked = run.one(ApprovalRequested)
    assert asked.question == "Tell me"
    assert asked.answer_schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where to"},
            "days": {"type": "integer"},
            "class": {"enum": ["first", "second"]},
        },
        "required": ["city"],
    }
    assert run.answer == f"got {answer}"


async def test_input_of_a_step_without_fields_is_a_text(tmp_path: Path) -> None:
    run = await run_agent(
        lambda _: workflow(asking()), "", tmp_path, decide=decide("respond", answer={"input": "Rome"})
    )
    assert run.answer == "got {'input': 'Rome'}"


async def test_input_of_a_step_can_be_refused(tmp_path: Path) -> None:
    step = asking({"name": "city", "field_type": "str", "required": True})
    run = await run_agent(lambda _: workflow(prepare, step), "", tmp_path, decide=decide("reject"))
    assert run.answer == "prepared: go"


async def test_person_chooses_the_route(tmp_path: Path) -> None:
    review = HumanReview(requires_user_input=True, user_input_message="Which way?")
    choices: list[Any] = [Step(name="left", executor=prepare), Step(name="right", executor=spell)]
    given = iter(["nowhere", "right"])
    run = await run_agent(
        lambda _: workflow(Router(name="route", choices=choices, human_review=review)),
        "",
        tmp_path,
        decide=lambda _: {"decision": "edit", "args": {"route": next(given)}},
    )
    first, second = run.all(ApprovalRequested)
    assert first.args == {"message": "Which way?", "route": ["left", "right"]}
    assert isinstance(second.args, dict) and second.args["error"] == "Set route to one of: left, right"
    assert run.answer == "one two"


@pytest.mark.parametrize("several", [False, True])
async def test_route_is_a_choice_among_its_steps(tmp_path: Path, several: bool) -> None:
    review = HumanReview(requires_user_input=True, user_input_message="Which way?", allow_multiple_selections=several)
    choices: list[Any] = [Step(name="left", executor=prepare), Step(name="right", executor=spell)]
    router = Router(name="route", choices=choices, human_review=review)
    answer = ["right"] if several else "right"
    run = await run_agent(lambda _: workflow(router), "", tmp_path, decide=decide("respond", answer=answer))
    asked = run.one(ApprovalRequested)
    choice = {"enum": ["left", "right"]}
    assert asked.question == "Which way?"
    assert asked.answer_schema == ({"type": "array", "items": choice, "minItems": 1} if several else choice)
    assert run.answer == "one two"


@pytest.mark.parametrize(
    ("decision", "answer"),
    [
        ({"decision": "approve"}, "one two"),
        ({"decision": "edit", "args": {"output": "three"}}, "three"),
        ({"decision": "respond", "answer": "four"}, "four"),
    ],
)
async def test_output_of_a_step_is_reviewed(decision: dict[str, Any], answer: str, tmp_path: Path) -> None:
    review = HumanReview(requires_output_review=True)
    step = Step(name="spell", executor=spell, human_review=review)
    run = await run_agent(lambda _: workflow(step), "", tmp_path, decide=lambda _: decision)
    assert run.one(ApprovalRequested).args == {"message": "Review output of step 'spell'?", "output": "one two"}
    assert run.answer == answer


async def test_rejected_output_is_made_again(tmp_path: Path) -> None:
    review = HumanReview(requires_output_review=True, on_reject=OnReject.retry)
    step = Step(name="spell", executor=spell, human_review=review)
    given = iter(["reject", "approve"])
    run = await run_agent(lambda _: workflow(step), "", tmp_path, decide=lambda _: {"decision": next(given)})
    assert [s.step_kind for s in run.all(StepStarted)] == ["spell", "spell"]
    assert run.answer == "one two"


async def test_failed_step_runs_again_or_is_skipped(tmp_path: Path) -> None:
    tries: list[int] = []

    def flaky(step_input: StepInput) -> Any:
        tries.append(1)
        if len(tries) < 3:
            raise ValueError("not yet")
        return "at last"

    step = Step(name="flaky", executor=flaky, max_retries=0, human_review=HumanReview(on_error=OnError.pause))
    run = await run_agent(lambda _: workflow(step), "", tmp_path, decide=decide("approve"))
    assert [a.args for a in run.all(ApprovalRequested)] == [{"error": "not yet", "question": "Run the step again?"}] * 2
    assert [s.error for s in run.all(StepFinished)] == ["not yet", "not yet", None]
    assert run.answer == "at last"
    tries.clear()
    skipped = await run_agent(lambda _: workflow(step, prepare), "", tmp_path / "2", decide=decide("reject"))
    assert skipped.answer == "prepared: go"


async def test_iterations_of_a_loop_are_reviewed(tmp_path: Path) -> None:
    review = HumanReview(requires_iteration_review=True, on_reject=OnReject.retry)
    loop = Loop(name="refine", steps=[Step(name="spell", executor=spell)], max_iterations=3, human_review=review)
    given = iter(["reject", "approve"])
    run = await run_agent(lambda _: workflow(loop), "", tmp_path, decide=lambda _: {"decision": next(given)})
    assert len(run.all(ApprovalRequested)) == 2
    assert run.answer == "one two"


# Runs that wait over a restart


async def test_step_that_waits_is_decided_after_a_restart(tmp_path: Path) -> None:
    def make(_: ModelEndpoint) -> Workflow:
        return workflow(prepare, confirming(), prepare)

    run = await decided_after_a_restart(make, "", tmp_path)
    assert [s.step_kind for s in run.all(StepStarted)] == ["prepare", "spell", "prepare"]
    assert run.text("spell") == "one two" and run.answer == "prepared: go"


async def test_agent_in_a_container_waits_over_a_restart(tmp_path: Path) -> None:
    def make(endpoint: ModelEndpoint) -> Workflow:
        steps: list[Any] = [Step(name="act", agent=plain(endpoint))]
        return workflow(prepare, Condition(name="check", evaluator=True, steps=steps), prepare)

    run = await decided_after_a_restart(make, DANGER, tmp_path)
    assert run.call("danger").result == "/tmp/x is gone"
    assert [s.step_kind for s in run.all(StepStarted, agent_id="")] == ["prepare", "check", "prepare"]
    assert run.answer == "prepared: go"


async def decided_after_a_restart(make: Any, script: str, data: Path) -> FinishedRun:
    """Start a run, end its server while it waits, and approve its request in another server."""
    frames: list[Frame] = []
    async with serve_agent(make, script, data) as server:
        async for frame in server.served.ask("go", format="records", session_id="a"):
            frames.append(frame)
            if isinstance(record_of(frame).event, ApprovalRequested):
                break
    request = record_of(frames[-1])
    assert isinstance(request.event, ApprovalRequested)
    async with serve_agent(make, script, data) as server:
        url = f"/runs/{request.run_id}/approvals/{request.event.approval_id}"
        (await server.served.http.post(url, json={"decision": "approve"})).raise_for_status()
        params = {"format": "records", "after": frames[-1].id}
        frames += await collect(server.served.stream("GET", f"/runs/{request.run_id}/stream", params=params))
    return checked_run(frames)


# Where Agno cannot wait


async def test_tool_that_waits_in_a_nested_workflow_fails_its_step(tmp_path: Path) -> None:
    def make(endpoint: ModelEndpoint) -> Workflow:
        return workflow(workflow(Step(name="act", agent=plain(endpoint)), name="inner"), prepare)

    run = await run_agent(make, DANGER, tmp_path)
    assert run.all(ApprovalRequested) == []
    failed = {s.step_kind: s.error for s in run.all(StepFinished) if s.error}
    assert failed["inner"] == "Agno cannot wait for a person in a nested workflow"
    assert run.answer == "prepared: go"


async def test_tool_that_waits_in_a_branch_fails_the_run(tmp_path: Path) -> None:
    def make(endpoint: ModelEndpoint) -> Workflow:
        act = Step(name="act", agent=plain(endpoint))
        parallel = side_by_side("both", act, spell)
        return workflow(parallel)

    run = await run_agent(make, DANGER, tmp_path)
    assert isinstance(run.terminal, RunFailed) and "inside Parallel" in run.terminal.message
