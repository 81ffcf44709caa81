"""Workflows of Agno for the tests: one for each scenario that applies to workflows, and one for each construct."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# Agno's own types are partly unknown.

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from agno.run.workflow import CustomEvent
from agno.workflow.condition import Condition
from agno.workflow.loop import Loop
from agno.workflow.parallel import Parallel
from agno.workflow.router import Router
from agno.workflow.step import Step
from agno.workflow.steps import Steps
from agno.workflow.types import HumanReview, OnError, StepInput, StepOutput, StepProgress
from agno.workflow.workflow import Workflow

from tests.sources.agno.agno_scenarios import CASES, add, plain, team
from tests.sources.conformance import Case
from tests.sources.live_turn import ModelEndpoint

FAILING = HumanReview(on_error=OnError.fail)


def workflow(*steps: Any, **options: Any) -> Workflow:
    given: dict[str, Any] = {"name": "flow", "steps": list(steps), "telemetry": False, **options}
    return Workflow(**given)


def side_by_side(name: str, *steps: Any) -> Any:
    return Parallel(*steps, name=name)


APPLICABLE = (
    "text",
    "one_tool",
    "parallel_tools",
    "tool_error",
    "malformed_args",
    "unknown_tool",
    "usage",
    "output_deltas",
    "approval",
    "approval_edited",
    "approval_rejected",
    "two_approvals",
    "approval_in_sub_agent",
    "model_error",
    "cut_stream",
    "big_result",
    "split_unicode",
    "fifty_tools",
    "stopped_in_a_tool",
    "plan",
    "parallel_sub_agents",
)
"""The scenarios that also hold if the agent that plays them runs in a step of a workflow. In the others the main agent
reasons, or starts the helper by a tool, and the main agent of a workflow has no model."""


def _made_by(case: Case) -> Callable[[ModelEndpoint], Workflow]:
    """A workflow of one step, in which the agent of a scenario runs, and whose failure is that of the workflow."""

    def make(endpoint: ModelEndpoint) -> Workflow:
        agent = case.make(endpoint)
        field: dict[str, Any] = {"team" if hasattr(agent, "members") else "agent": agent}
        return workflow(Step(name="act", max_retries=0, human_review=FAILING, **field))

    return make


WORKFLOW_CASES: dict[str, Case] = {
    **{name: Case(_made_by(CASES[name]), CASES[name].script) for name in APPLICABLE},
    "steps": Case(lambda endpoint: workflow(plain(endpoint), plain(endpoint, name="last")), CASES["text"].script),
}


# Functions


def prepare(step_input: StepInput) -> StepOutput:
    return StepOutput(content=f"prepared: {step_input.input}")


async def prepare_async(step_input: StepInput) -> str:
    await asyncio.sleep(0)
    return f"prepared: {step_input.input}"


def spell(step_input: StepInput) -> Iterator[Any]:
    yield "one "
    yield "two"


async def spell_async(step_input: StepInput) -> AsyncIterator[Any]:
    yield "three "
    yield StepProgress(content="half of it")
    yield "four"


def stop_early(step_input: StepInput) -> StepOutput:
    return StepOutput(content="Enough.", stop=True)


def fail(step_input: StepInput) -> StepOutput:
    raise ValueError("no such file")


async def notify(step_input: StepInput) -> AsyncIterator[Any]:
    yield CustomEvent(content="almost there")
    yield StepOutput(content="notified")


def forwarding(agent: Any) -> Callable[[StepInput], AsyncIterator[Any]]:
    """A function that runs an agent, and yields the agent's events and its answer."""

    async def forward(step_input: StepInput) -> AsyncIterator[Any]:
        answer = ""
        async for event in agent.arun(str(step_input.input), stream=True, stream_events=True, yield_run_output=True):
            if hasattr(event, "event"):
                yield event
            else:
                answer = event.content
        yield StepOutput(content=answer)

    return forward


async def whole(workflow: Workflow, execution_input: Any) -> AsyncIterator[Any]:
    """A function that is the whole workflow."""
    yield f"You said {execution_input.input}. "
    yield "Bye."


SCRIPT = """
- match: "prepared"
  turns:
    - steps: [{tool_calls: [{name: add, arguments: {a: 2, b: 3}}]}]
    - steps: [{text: The sum is five.}]
- turns:
    - steps: [{text: All done.}]
"""


def sequence(endpoint: ModelEndpoint) -> Workflow:
    return workflow(prepare, plain(endpoint, name="worker"), Step(name="tell", agent=plain(endpoint, name="teller")))


def functions(endpoint: ModelEndpoint) -> Workflow:
    return workflow(prepare, prepare_async, spell, notify, spell_async)


def parallel(endpoint: ModelEndpoint) -> Workflow:
    left, right = plain(endpoint, name="left"), Step(name="right", agent=plain(endpoint, name="rightist"))
    return workflow(prepare, side_by_side("both", left, right, spell), Step(name="tell", executor=spell_async))


def nested_parallel(endpoint: ModelEndpoint) -> Workflow:
    inner = side_by_side("inner", plain(endpoint, name="a"), plain(endpoint, name="b"))
    condition = Condition(name="check", evaluator=lambda _: True, steps=[prepare, plain(endpoint, name="c")])
    return workflow(side_by_side("outer", inner, condition))


def condition(endpoint: ModelEndpoint) -> Workflow:
    async def is_long(step_input: StepInput) -> bool:
        return len(str(step_input.input)) > 100

    return workflow(
        Condition(name="short", evaluator=lambda _: True, steps=[prepare, plain(endpoint, name="worker")]),
        Condition(name="long", evaluator=is_long, steps=[spell], else_steps=[spell_async]),
        Condition(name="never", evaluator=False, steps=[spell]),
    )


def loop(endpoint: ModelEndpoint) -> Workflow:
    steps: list[Any] = [prepare, Step(name="draft", agent=plain(endpoint, name="writer"))]
    seen: list[int] = []

    def is_good(outputs: list[StepOutput]) -> bool:
        seen.append(len(outputs))
        return len(seen) % 2 == 0

    return workflow(Loop(name="refine", steps=steps, max_iterations=3, end_condition=is_good))


def router(endpoint: ModelEndpoint) -> Workflow:
    easy = Step(name="easy", executor=spell)
    hard = Step(name="hard", agent=plain(endpoint, name="expert"))

    def choose(_: StepInput) -> Any:
        return [hard]

    return workflow(Router(name="route", choices=[easy, hard], selector=choose))


def router_with_lists(endpoint: ModelEndpoint) -> Workflow:
    choices: list[Any] = [[prepare, plain(endpoint, name="worker")], spell]

    def choose(_: StepInput) -> Any:
        return ["steps_group_0", "spell"]

    return workflow(Router(name="route", choices=choices, selector=choose))


def steps(endpoint: ModelEndpoint) -> Workflow:
    return workflow(Steps(name="group", steps=[prepare, plain(endpoint, name="worker")]), spell)


def nested_workflow(endpoint: ModelEndpoint) -> Workflow:
    inner = workflow(prepare, plain(endpoint, name="deep"), name="inner")
    return workflow(Step(name="first", workflow=inner), workflow(workflow(spell, name="innermost"), name="second"))


def deeply_nested(endpoint: ModelEndpoint) -> Workflow:
    worker = Condition(name="check", evaluator=lambda _: True, steps=[plain(endpoint, name="worker")])
    inner = workflow(Steps(name="group", steps=[Steps(name="subgroup", steps=[prepare, worker])]), name="inner")
    return workflow(Step(name="whole", workflow=workflow(Step(name="part", workflow=inner), name="outer")))


def teams(endpoint: ModelEndpoint) -> Workflow:
    return workflow(prepare, Step(name="together", team=team(endpoint, tools=[add])))


def forwarded(endpoint: ModelEndpoint) -> Workflow:
    return workflow(prepare, Step(name="ask", executor=forwarding(plain(endpoint, name="asked"))))


def early_stop(endpoint: ModelEndpoint) -> Workflow:
    return workflow(prepare, stop_early, plain(endpoint, name="never"))


def skipped_errors(endpoint: ModelEndpoint) -> Workflow:
    return workflow(
        Step(name="first", executor=fail, max_retries=0),
        Step(name="second", executor=fail, max_retries=0, skip_on_failure=True),
        side_by_side("both", Step(name="third", executor=fail, max_retries=0), spell),
        Steps(name="group", steps=[Step(name="fourth", executor=fail, max_retries=0)]),
        prepare,
    )


def function_only(endpoint: ModelEndpoint) -> Workflow:
    return workflow(steps=whole)


CONSTRUCTS: dict[str, Callable[[ModelEndpoint], Workflow]] = {
    made.__name__: made
    for made in (
        sequence,
        functions,
        parallel,
        nested_parallel,
        condition,
        loop,
        router,
        router_with_lists,
        steps,
        nested_workflow,
        deeply_nested,
        teams,
        forwarded,
        early_stop,
        skipped_errors,
        function_only,
    )
}
UNORDERED = ("parallel", "nested_parallel", "skipped_errors")
"""The constructs in which steps run at the same time."""
