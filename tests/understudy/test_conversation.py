"""Requests are read the same way, however a framework writes down what happened."""

from typing import Any

import pytest

from limelight.errors import BadRequest
from limelight.understudy.conversation import Asked, Call, Entry, Got, Said, Tool, read_request
from tests.understudy.requests import STRING, request_of, tool, user

CALL = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path":"/"}'}}
WRITTEN = "[{'id': 'c1', 'type': 'function', 'function': {'name': 'ls', 'arguments': {'path': '/'}}}]"
LS = Call("ls", '{"path":"/"}', "c1")


@pytest.mark.parametrize(
    ("messages", "entries"),
    [
        (["a"], [Asked("a")]),
        ([user("") | {"content": [{"type": "text", "text": "a"}, {"type": "image_url"}]}], [Asked("a")]),
        ([{"role": "system", "content": "s"}, {"role": "developer", "content": "d"}, "a"], [Asked("a")]),
        (
            [
                "a",
                {"role": "assistant", "content": None, "tool_calls": [CALL]},
                {"role": "tool", "tool_call_id": "c1", "content": "f"},
            ],
            [Asked("a"), Said("", (LS,)), Got("ls", "f", given=LS.arguments)],
        ),
        (["a", {"role": "tool", "tool_call_id": "lost", "content": "f"}], [Asked("a"), Got("tool", "f")]),
        (
            [
                user("New task:\na"),
                {"role": "assistant", "content": f"Hm.\nCalling tools:\n{WRITTEN}"},
                user("Observation:\nf\nNew task:\nb"),
            ],
            [
                Asked("a"),
                Said("Hm.", (Call("ls", '{"path": "/"}', "c1"),)),
                Got("ls", "f", given='{"path": "/"}'),
                Asked("b"),
            ],
        ),
        (
            [user("New task:\na\nError:\nno")],
            [Asked("a"), Got("tool", "Error:\nno", lost=True, orphan=True)],
        ),
        (
            [user("New task:\na"), {"role": "assistant", "content": "Calling tools:\nnonsense("}],
            [Asked("a"), Said("")],
        ),
        # without that framework's marks, a user may well write such a line
        (["Observation:\nbees"], [Asked("Observation:\nbees")]),
    ],
)
def test_entries(messages: list[Any], entries: list[Entry]) -> None:
    assert list(request_of(*messages).entries) == entries


def test_what_was_asked_and_what_happened_since() -> None:
    said = {"role": "assistant", "content": "", "tool_calls": [CALL]}
    result = {"role": "tool", "tool_call_id": "c1", "content": "f"}
    request = request_of({"role": "system", "content": "s"}, "a", said, result, "b", said, result)
    assert request.asked == "b"
    assert request.calls == [LS]
    assert request.results == [Got("ls", "f", given=LS.arguments)]
    assert request.system == "s"
    assert not request.is_first
    assert request_of("a").is_first


def test_options() -> None:
    request = request_of(
        "a", tools=[tool("ls", "Lists.", path=STRING)], stream=True, stream_options={"include_usage": True}
    )
    parameters = {"type": "object", "properties": {"path": STRING}, "required": ["path"]}
    assert request.tools == (Tool("ls", "Lists.", parameters),)
    assert (request.stream, request.include_usage, request.schema, request.demands) == (True, True, None, False)
    assert request_of("a", response_format={"type": "json_object"}).schema == {"type": "object"}
    assert request_of("a", temperature=1, seed=7, unknown={}).model == "any"


def test_the_mark_tells_conversations_apart() -> None:
    assert request_of("a").mark == request_of("a", stream=True).mark
    assert request_of("a").mark != request_of("b").mark


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"messages": 1}', b'{"messages": [{"role": 1}]}', b"\xff"])
def test_what_cannot_be_read(body: bytes) -> None:
    with pytest.raises(BadRequest, match="no chat completion request"):
        read_request(body)
