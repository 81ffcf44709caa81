"""Objects as function agents: which are accepted, and when their hooks are called."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

import pytest

from limelight.agents.load import wrap
from limelight.errors import AgentFailed, SetupError
from limelight.messages import Message
from limelight.models import SessionRef
from limelight.sources.base import Context, Turn
from limelight.sources.function import FunctionSource
from limelight.sources.function_agent import FunctionAgent, agent_method
from limelight.stores.sqlite import SqliteStore
from tests.sources.fake_turn import FakeContext, new_turn
from tests.stores.operations import opened
from tests.support.server import Served, offer, serving
from tests.support.wait import eventually


class Shop:
    """Sells things.

    And more.
    """

    def __init__(self) -> None:
        self.calls: list[Any] = []

    async def run(self, messages: list[Message], ctx: Context) -> AsyncGenerator[str]:
        self.calls.append("run")
        yield "sold"

    async def open(self) -> None:
        self.calls.append("open")

    async def close(self) -> None:
        self.calls.append("close")

    async def forget(self, session_id: str) -> None:
        self.calls.append(("forget", session_id))


class SyncShop(Shop):
    def open(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.calls.append("open")

    def close(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.calls.append("close")

    def forget(self, session_id: str, user_id: str = "") -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.calls.append(("forget", session_id, user_id))


class Callable:
    async def __call__(self, messages: list[Message], ctx: Context) -> AsyncGenerator[str]:
        """Answers when it is called."""
        yield "called"


class Coroutine:
    async def run(self, messages: list[Message], ctx: Context) -> str:
        return "returned"


class Blocking:
    def run(self, messages: list[Message], ctx: Context) -> Generator[str]:
        yield "from a thread"


class OtherFramework:
    """Like the agents of some frameworks, which take other parameters."""

    async def run(self, prompt: str = "", *, deps: object = None) -> str:
        return prompt

    def __call__(self, messages: list[Message], ctx: Context) -> str:
        return "not a generator"


async def answer(source: Any, turn: Turn | None = None) -> str:
    items = [item async for item in source.run(turn or new_turn())]
    return "".join(getattr(item, "text", "") for item in items)


@pytest.mark.parametrize(
    ("target", "text"),
    [(Shop, "sold"), (Callable, "called"), (Coroutine, "returned"), (Blocking, "from a thread")],
)
async def test_object_with_a_method_is_an_agent_and_its_class_is_a_factory(target: type, text: str) -> None:
    assert FunctionSource.accepts(target())
    assert not FunctionSource.accepts(target)
    assert await answer(wrap(target(), "x")) == text
    assert await answer(wrap(target, "x")) == text


@pytest.mark.parametrize("target", [OtherFramework(), object(), 5, "run", Shop])
def test_other_objects_are_not_accepted(target: object) -> None:
    assert agent_method(target) is None
    assert not FunctionSource.accepts(target)
    with pytest.raises(TypeError, match="is not a function"):
        FunctionAgent(target)


def test_class_that_needs_arguments_is_refused_with_a_fix() -> None:
    class Needy(Shop):
        def __init__(self, model: str) -> None: ...

    with pytest.raises(SetupError, match=r"'x:y' is a class that needs arguments \(model\).*`agent = Needy\(…\)`"):
        wrap(Needy, "x:y")


def test_class_that_raises_is_refused_with_the_error() -> None:
    class Broken(Shop):
        def __init__(self) -> None:
            raise OSError("no database")

    with pytest.raises(SetupError, match="'x:y' cannot be created: OSError: no database"):
        wrap(Broken, "x:y")


def test_description_is_that_of_the_class_or_of_the_method() -> None:
    assert FunctionSource(Shop()).description == "Sells things."
    assert FunctionSource(Callable()).description == "Answers when it is called."
    assert FunctionSource(Blocking()).description == ""


# Hooks


@pytest.mark.requirement("function-hooks")
@pytest.mark.parametrize("make", [Shop, SyncShop])
async def test_object_is_opened_before_the_first_run_and_closed_with_the_server(
    make: type[Shop], tmp_path: Path
) -> None:
    shop = make()
    async with serving(agents=[offer(shop, "shop")], data=tmp_path) as served:
        assert shop.calls == ["open"]
        await ask(served, "a")
        await ask(served, "b")
        assert shop.calls == ["open", "run", "run"]
    assert shop.calls == ["open", "run", "run", "close"]


async def ask(served: Served, *texts: str, session_id: str = "s", **body: Any) -> Any:
    roles = ("user", "assistant")
    messages = [{"role": roles[number % 2], "content": text} for number, text in enumerate(texts)]
    response = await served.http.post("/chat", json={"messages": messages, "session_id": session_id, **body})
    return response.json()


@pytest.mark.requirement("function-hooks")
async def test_deleted_session_is_forgotten_once(tmp_path: Path) -> None:
    shop = Shop()
    async with serving(agents=[offer(shop, "shop")], data=tmp_path) as served:
        await ask(served, "a")
        await ask(served, "changed", "x", "b")
        shop.calls.clear()
        assert (await served.http.delete("/sessions/s")).status_code < 300
        assert shop.calls == [("forget", "s")]
        await ask(served, "a")
        assert shop.calls == [("forget", "s"), "run"]


@pytest.mark.requirement("function-hooks")
async def test_replaced_conversation_is_forgotten_before_the_run_that_replaces_it(tmp_path: Path) -> None:
    shop = SyncShop()
    async with serving(agents=[offer(shop, "shop")], data=tmp_path) as served:
        await ask(served, "a")
        await ask(served, "a", "sold", "b")
        assert shop.calls == ["open", "run", "run"]
        await ask(served, "edited", "sold", "b")
        assert shop.calls == ["open", "run", "run", ("forget", "s", "local"), "run"]
        await served.runtime.sessions.resources.release(SessionRef("local", "other"))  # deletes all stale memories
        assert len(shop.calls) == 5


async def test_session_that_was_deleted_before_a_crash_is_forgotten_at_the_next_start(tmp_path: Path) -> None:
    shop = Shop()
    async with serving(agents=[offer(Shop(), "shop")], data=tmp_path) as served:
        await ask(served, "a")
    async with opened(lambda: SqliteStore(tmp_path / "limelight.db")) as store:
        assert await store.delete(SessionRef("local", "s"))
    async with serving(agents=[offer(shop, "shop")], data=tmp_path):
        await eventually(lambda: ("forget", "s") in shop.calls)


class Failing(Shop):
    def __init__(self, hook: str) -> None:
        super().__init__()
        self.hook = hook

    async def open(self) -> None:
        self.fail("open")

    async def close(self) -> None:
        self.fail("close")

    async def forget(self, session_id: str) -> None:
        self.fail("forget")

    def fail(self, hook: str) -> None:
        if hook == self.hook:
            raise ConnectionError("no database")


async def test_failing_open_is_reported_with_the_class_and_the_error() -> None:
    with pytest.raises(SetupError, match=r"Failing.open\(\) has failed: ConnectionError: no database"):
        await FunctionAgent(Failing("open")).open()


async def test_failing_close_is_logged_and_the_server_ends(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(agents=[offer(Failing("close"), "shop")], data=tmp_path) as served:
        await ask(served, "a")
    assert "agent shop could not be closed: ConnectionError('no database')" in caplog.text


async def test_failing_forget_fails_the_run_that_replaces_the_conversation(tmp_path: Path) -> None:
    async with serving(agents=[offer(Failing("forget"), "shop")], data=tmp_path) as served:
        await ask(served, "a")
        problem = await ask(served, "edited", "x", "b")
        assert (problem["code"], problem["detail"]) == (
            AgentFailed.code,
            "Failing.forget() has failed: ConnectionError: no database",
        )


async def test_failing_forget_of_a_deleted_session_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    async with serving(agents=[offer(Failing("forget"), "shop")], data=tmp_path) as served:
        await ask(served, "a")
        assert (await served.http.delete("/sessions/s")).status_code < 300
    assert "Failing.forget() has failed: ConnectionError: no database" in caplog.text


async def test_function_has_no_hooks() -> None:
    async def agent(messages: list[Message], ctx: FakeContext) -> AsyncGenerator[str]:
        yield "x"

    agent.open = agent.close = agent.forget = None  # pyright: ignore[reportFunctionMemberAccess]
    source = FunctionAgent(agent)
    await asyncio.gather(source.open(), source.close(), source.forget("ann", "s"))
    assert source.function is agent
