"""smolagents: the memory of conversations between turns, and the pixels of live turns, are bounded."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedFunctionDecorator=false, reportUnknownArgumentType=false

import asyncio
import base64
import gc
import io
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from smolagents import tool
from smolagents.memory import ActionStep, PlanningStep, TaskStep
from smolagents.models import ChatMessage, MessageRole
from smolagents.monitoring import Timing
from smolagents.utils import AgentExecutionError

from limelight.events import RunFailed, RunFinished, Status
from limelight.messages import Message
from limelight.models import LOCAL_OWNER, Memory, SessionRef
from limelight.sources.image_budget import ImageBudget
from limelight.sources.smolagents import SmolagentsSource
from limelight.sources.smolagents.files import sent_files
from limelight.sources.smolagents.memory import admit_images, memory_bytes, shrink, size_of
from tests.sources.live_turn import ModelEndpoint, serve_agent
from tests.sources.recorded_requests import Requests, conversation_in
from tests.sources.smolagents.smolagents_scenarios import TWO_TURNS, calling, coding, leading
from tests.sources.smolagents.test_sandboxed_executor import use_sandbox
from tests.support.wait import eventually

ENDPOINT = ModelEndpoint("http://127.0.0.1:1/v1", "key")
TIMING = Timing(0.0, 0.0)
UNLIMITED = ImageBudget(10**9, 10**9)


def image_url(width: int, height: int) -> str:
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), "blue").save(buffer, format="PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def image_part(width: int, height: int) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": image_url(width, height)}}


def image_urls(requests: Requests) -> set[str]:
    """The images in the last request to the model."""
    parts = [part for message in requests[-1]["messages"] for part in message.get("content") or ()]
    return {part["image_url"]["url"] for part in parts if part["type"] == "image_url"}


def decoded_image(width: int, height: int) -> Any:
    """An image of a user's question, as the agent gets it."""
    message = Message(role="user", content=[image_part(width, height)])
    (image,) = sent_files(message, UNLIMITED.lease("ann")).images
    return image


# Between turns


def test_images_of_a_question_are_not_decoded_between_turns() -> None:
    agent: Any = calling()(ENDPOINT)
    agent.memory.steps = [TaskStep("look", task_images=[decoded_image(1000, 500)])]
    decoded = weakref.ref(images_of(agent.memory.steps[0])[0])
    assert memory_bytes(agent) < 50_000
    shrink(agent)
    gc.collect()
    assert decoded() is None
    (image,) = images_of(agent.memory.steps[0])
    assert image.size == (1000, 500)
    assert image.getpixel((999, 499)) == (0, 0, 255)


def test_image_that_several_steps_have_is_one_image_between_turns() -> None:
    agent: Any = calling()(ENDPOINT)
    image = decoded_image(10, 10)
    agent.memory.steps = [TaskStep("a", task_images=[image]), ActionStep(1, TIMING, observations_images=[image])]
    shrink(agent)
    first, second = (images_of(step) for step in agent.memory.steps)
    assert first[0] is second[0] is not image
    assert admit_images(agent, ImageBudget(100, 100).lease("ann")) == 0


def test_image_that_an_agent_has_observed_is_encoded_between_turns() -> None:
    agent: Any = coding()(ENDPOINT)
    agent.memory.steps = [ActionStep(1, TIMING, observations_images=[Image.new("L", (1000, 1000), 7)])]
    assert memory_bytes(agent) > 1000 * 1000
    shrink(agent)
    assert memory_bytes(agent) < 50_000
    assert images_of(agent.memory.steps[0])[0].getpixel((0, 0)) == 7


def test_image_without_an_encoding_is_counted_by_its_pixels() -> None:
    agent: Any = calling()(ENDPOINT)
    image = Image.new("F", (100, 100))
    agent.memory.steps = [ActionStep(1, TIMING, observations_images=[image])]
    shrink(agent)
    assert agent.memory.steps[0].observations_images == [image]
    assert memory_bytes(agent) > 4 * 100 * 100


def test_inputs_and_tracebacks_of_earlier_steps_are_released_between_turns() -> None:
    agent: Any = leading(calling, calling)(ENDPOINT)
    sent = ChatMessage(role=MessageRole.USER, content="x" * 100_000)
    (managed,) = list(agent.managed_agents.values())[:1]
    for one in (agent, managed):
        failed = ActionStep(1, TIMING, model_input_messages=[sent], error=failed_step("y" * 100_000, one.logger))
        one.memory.steps = [failed, PlanningStep([sent], sent, "plan", TIMING)]
        one.memory.steps[1].model_output_message = ChatMessage(role=MessageRole.ASSISTANT, content="plan")
    shrink(agent)
    assert memory_bytes(agent) < 50_000
    for one in (agent, managed):
        error = one.memory.steps[0].error
        assert error.message == "it failed"
        assert error.__traceback__ is error.__cause__ is error.__context__ is None
        assert one.memory.steps[1].dict()["model_input_messages"] == []


def failed_step(large: str, logger: Any) -> AgentExecutionError:
    """The error of a step, whose traceback and cause refer to a large text."""
    try:
        try:
            raise ValueError(large)
        except ValueError as cause:
            raise AgentExecutionError("it failed", logger) from cause
    except AgentExecutionError as error:
        return error


def test_size_counts_each_object_once_and_no_code() -> None:
    text = "x" * 10_000
    looped: list[Any] = [text, {"key": text}, {1, 2}, (text,)]
    looped.append(looped)
    assert 10_000 < size_of(looped) < 12_000
    assert size_of([io, Path, shrink, looped.append, None]) < 200


@pytest.mark.requirement("conversations-bounded")
async def test_conversation_over_the_limit_continues_with_its_history(
    tmp_path: Path, requests: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    unloaded: list[str] = []
    unload = SmolagentsSource.unload

    async def noted_unload(self: SmolagentsSource, memory_key: str) -> None:
        assert self.held_bytes(memory_key) > 0
        await unload(self, memory_key)
        assert self.held_bytes(memory_key) == 0
        unloaded.append(memory_key)

    monkeypatch.setattr(SmolagentsSource, "unload", noted_unload)
    async with serve_agent(calling(), TWO_TURNS, tmp_path, limits__conversation_bytes=100) as server:
        await server.run("the sum please", session_id="a")
        await eventually(lambda: len(unloaded) == 1)
        requests.clear()
        assert (await server.run("and what was that?", session_id="a")).answer == "It was the sum."
        await eventually(lambda: len(unloaded) == 2)
        assert len(set(unloaded)) == 1
    text = "\n".join(content for _, content in conversation_in(requests[0]))
    assert text.count("the sum please") == 1 and text.count("It is five.") == 2


@pytest.mark.requirement("conversations-bounded")
async def test_large_questions_of_a_user_do_not_add_up(tmp_path: Path) -> None:
    size, limit = 500_000, 2_000_000
    async with serve_agent(calling(), TWO_TURNS, tmp_path, limits__conversation_bytes=limit) as server:
        runtime = server.served.runtime
        source = runtime.agents.get("agent").source
        memories: list[Memory] = []
        for number in range(8):
            await server.run("the sum" + "x" * size, session_id=str(number))
            memory = await runtime.store.memory(SessionRef(LOCAL_OWNER, str(number)), "agent")
            assert memory is not None
            memories.append(memory)

        def held() -> list[int]:
            return [found for memory in memories if (found := source.held_bytes(memory.key))]

        await eventually(lambda: len(held()) == 3)  # one copy of each question, and not one for each step
        assert size < min(held()) and sum(held()) <= limit


# Live turns


def test_oldest_images_of_a_conversation_make_room_for_later_ones() -> None:
    agent: Any = calling()(ENDPOINT)
    agent.memory.steps = [
        TaskStep("one", task_images=[decoded_image(10, 10), decoded_image(2, 2)]),
        ActionStep(1, TIMING, observations_images=[decoded_image(5, 5)]),
        TaskStep("two", task_images=[decoded_image(9, 9)]),
    ]
    assert admit_images(agent, ImageBudget(110, 1000).lease("ann")) == 1
    sizes = [[image.width for image in images_of(step)] for step in agent.memory.steps]
    assert sizes == [[2], [5], [9]]


def images_of(step: Any) -> list[Any]:
    return [*(getattr(step, "task_images", None) or ()), *(getattr(step, "observations_images", None) or ())]


entered, gate = threading.Event(), threading.Event()


@tool
def wait_at_gate() -> str:
    """Wait until the test opens the gate."""
    entered.set()
    gate.wait()
    return "open"


GATED = """
- match: gate
  turns:
    - steps: [{tool_calls: [{name: wait_at_gate, arguments: {}}]}]
    - steps: [{tool_calls: [{name: final_answer, arguments: {answer: Done.}}]}]
- match: hello
  turns: [{steps: [{tool_calls: [{name: final_answer, arguments: {answer: Hello!}}]}]}]
"""


def question(text: str, *images: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "text", "text": text}, *images]}]


@pytest.mark.requirement("images-bounded")
async def test_images_of_live_turns_share_a_limit_that_ended_turns_release(tmp_path: Path) -> None:
    entered.clear()
    gate.clear()
    async with serve_agent(calling(wait_at_gate), GATED, tmp_path, limits__image_pixels=150) as server:
        live = asyncio.create_task(server.run(None, messages=question("the gate", image_part(10, 10))))
        await asyncio.to_thread(entered.wait)
        try:
            refused = await server.run(None, messages=question("hello", image_part(9, 9)), session_id="b")
            assert isinstance(refused.terminal, RunFailed)
            assert refused.terminal.code == "too_many_bytes"
            assert "the images of your live runs have more than 150 pixels" in refused.terminal.message
            assert (await server.run("hello", session_id="b")).answer == "Hello!"
        finally:
            gate.set()
        assert isinstance((await live).terminal, RunFinished)
        later = await server.run(None, messages=question("hello", image_part(12, 12)), session_id="b")
        assert later.answer == "Hello!"


@pytest.mark.requirement("images-bounded")
async def test_images_of_earlier_turns_count_and_the_newest_are_shown(tmp_path: Path, requests: Requests) -> None:
    async with serve_agent(calling(), TWO_TURNS, tmp_path, limits__image_pixels=100) as server:
        first = await server.run(None, messages=question("hello", image_part(8, 8)), session_id="a")
        assert first.all(Status) == []
        requests.clear()
        second = await server.run(None, messages=question("hello", image_part(7, 7)), session_id="a")
        assert [status.text for status in second.all(Status)] == [
            "The pictures of this conversation are too large together: the first 1 of them are left out"
        ]
        assert image_urls(requests) == {image_url(7, 7)}
        requests.clear()
        third = await server.run(None, messages=question("hello", image_part(7, 6)), session_id="a")
        assert third.all(Status) == []
        assert image_urls(requests) == {image_url(7, 7), image_url(7, 6)}


@pytest.mark.requirement("images-bounded")
async def test_images_of_a_history_count_with_those_of_the_question(tmp_path: Path, requests: Requests) -> None:
    sizes = [(6, 5), (5, 6), (6, 6), (5, 5), (7, 5)]
    messages: list[dict[str, Any]] = []
    for size in sizes:
        messages += [*question("hello", image_part(*size)), {"role": "assistant", "content": "Hello!"}]
    async with serve_agent(calling(), TWO_TURNS, tmp_path, limits__image_pixels=96) as server:
        assert (await server.run(None, messages=messages[:-1])).answer == "Hello!"
    assert image_urls(requests) == {image_url(7, 5), image_url(5, 5), image_url(6, 6)}


@pytest.mark.requirement("images-bounded")
async def test_images_of_sandboxed_code_are_limited_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_sandbox(monkeypatch, "landlock")
    image = "from PIL import Image\\nImage.new('L', (30, 30))"
    steps = (image, image, "final_answer(1)")
    script = "".join(f'- steps: [{{text: "<code>\\n{step}\\n</code>"}}]\n' for step in steps)
    make = coding(additional_authorized_imports=["PIL", "PIL.Image"])
    async with serve_agent(make, script, tmp_path, limits__image_pixels=1000) as server:
        run = await server.run()
    assert isinstance(run.terminal, RunFinished)
    assert run.call("python_interpreter", 0).error is None
    assert "900 pixels are too many" in str(run.call("python_interpreter", 1).error)
