# pyright: reportMissingTypeStubs=false
"""The way of a token: the functions of ours through which one token passes, from a model's chunk to the bytes.

A function is on the way if the token is in its arguments or in its result. The table "A token" in
`docs/architecture.md` lists them in order.
"""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.graph import END, START, MessagesState, StateGraph

import limelight
from limelight.runs.hub import FrameBatch
from tests.support.markdown import rows, sections
from tests.support.server import offer, serving

PACKAGE = Path(limelight.__file__).parent
ARCHITECTURE = PACKAGE.parents[1] / "docs" / "architecture.md"
MAX_FUNCTIONS = 20
TOKEN = "marked-token"
DEPTH = 8
"""How deep a value may contain the token: a batch has runs, a run has Records, a Record an event, an event a text."""


class GatedModel(BaseChatModel):
    """A model that streams one chunk, waits for the gate, and streams the token."""

    gate: Any = None

    @property
    def _llm_type(self) -> str:
        return "gated"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessageChunk(content=TOKEN))])

    async def _astream(self, messages: list[BaseMessage], *_: Any, **__: Any) -> AsyncIterator[ChatGenerationChunk]:
        yield ChatGenerationChunk(message=AIMessageChunk(content="before "))
        await self.gate.wait()
        yield ChatGenerationChunk(message=AIMessageChunk(content=TOKEN))
        await asyncio.Event().wait()


def graph(gate: asyncio.Event) -> Any:
    model = GatedModel(gate=gate)

    async def chat(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    builder: Any = StateGraph(MessagesState)
    builder.add_node("chat", chat)
    builder.add_edge(START, "chat")
    builder.add_edge("chat", END)
    return builder.compile()


class Profiler:
    """Notes the functions of ours that the token passes, in all threads, while it is on."""

    def __init__(self) -> None:
        self.functions: dict[str, None] = {}
        self.is_on = False

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        if not self.is_on or event not in ("call", "return"):
            return
        path = Path(frame.f_code.co_filename)
        if not path.is_relative_to(PACKAGE):
            return
        values = _arguments(frame) if event == "call" else [_yielded(arg)]
        if any(carries(value) for value in values):
            name = frame.f_code.co_qualname.replace(".<locals>.<listcomp>", "")
            self.functions.setdefault(f"{path.relative_to(PACKAGE)}: {name}")


def _arguments(frame: FrameType) -> list[Any]:
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return [frame.f_locals.get(name) for name in names if name != "self"]


def _yielded(arg: Any) -> Any:
    """The result of a call. An async generator wraps what it yields, in a type that cannot be looked into."""
    return TOKEN if type(arg).__name__ == "async_generator_wrapped_value" else arg


def carries(value: Any, depth: int = DEPTH) -> bool:
    """Whether a value is or contains the token."""
    match value:
        case str():
            return TOKEN in value
        case bytes() | bytearray():
            return TOKEN.encode() in value
        case _ if not depth:
            return False
        case list() | tuple() | set():
            return any(carries(item, depth - 1) for item in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case dict():
            return any(carries(item, depth - 1) for item in value.values())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case FrameBatch():
            return carries(value.frames, depth - 1)
        case AIMessageChunk():
            return carries(value.content, depth - 1)
        case msgspec.Struct():
            return any(carries(getattr(value, name), depth - 1) for name in value.__struct_fields__)
        case _:
            return False


async def profile_one_token(data: Path) -> list[str]:
    gate, profiler = asyncio.Event(), Profiler()
    threading.setprofile(profiler)  # for the threads that the server starts
    try:
        async with serving(agents=[offer(graph(gate), "graph")], data=data) as served:
            async for frame in served.ask("hi"):
                if "before" in str(frame.data):
                    await asyncio.sleep(0.1)  # longer than an interval, so that nothing else is being delivered
                    sys.setprofile(profiler)
                    profiler.is_on = True
                    gate.set()
                if TOKEN in str(frame.data):
                    profiler.is_on = False
                    sys.setprofile(None)
                    break
    finally:
        sys.setprofile(None)
        threading.setprofile(_no_profile())
    return list(profiler.functions)


def _no_profile() -> "Callable[..., Any]":
    return None  # pyright: ignore[reportReturnType]


async def test_way_of_a_token_is_short_and_documented(tmp_path: Path) -> None:
    functions = await profile_one_token(tmp_path)
    table = rows(sections(sections(ARCHITECTURE.read_text(), 2)["Paths through the code"], 3)["A token"])
    documented = [f"{file.strip('`')}: {function.strip('`')}" for file, function, _ in table]
    assert functions == documented
    assert len(functions) <= MAX_FUNCTIONS
