"""Requests of all frameworks are parsed into the same entries."""

from typing import Any

import pytest

from limelight.errors import BadRequest
from limelight.understudy.chat_requests import (
    AssistantMessage,
    Entry,
    Tool,
    ToolCall,
    ToolResult,
    UserMessage,
    read_request,
)
from tests.understudy.request_builders import STRING, build_request, tool, user

CALL = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path":"/"}'}}
CALL_TEXT = "[{'id': 'c1', 'type': 'function', 'function': {'name': 'ls', 'arguments': {'path': '/'}}}]"
LS = ToolCall("ls", '{"path":"/"}', "c1")


@pytest.mark.parametrize(
    ("messages", "entries"),
    [
        (["a"], [UserMessage("a")]),
        ([user("") | {"content": [{"type": "text", "text": "a"}, {"type": "image_url"}]}], [UserMessage("a")]),
        ([{"role": "system", "content": "s"}, {"role": "developer", "content": "d"}, "a"], [UserMessage("a")]),
        (
            [
                "a",
                {"role": "assistant", "content": None, "tool_calls": [CALL]},
                {"role": "tool", "tool_call_id": "c1", "content": "f"},
            ],
            [UserMessage("a"), AssistantMessage("", (LS,)), ToolResult("ls", "f", arguments=LS.arguments)],
        ),
        (
            ["a", {"role": "tool", "tool_call_id": "unknown", "content": "f"}],
            [UserMessage("a"), ToolResult("tool", "f")],
        ),
        (
            [
                user("New task:\na"),
                {"role": "assistant", "content": f"Hm.\nCalling tools:\n{CALL_TEXT}"},
                user("Observation:\nf\nNew task:\nb"),
            ],
            [
                UserMessage("a"),
                AssistantMessage("Hm.", (ToolCall("ls", '{"path": "/"}', "c1"),)),
                ToolResult("ls", "f", arguments='{"path": "/"}'),
                UserMessage("b"),
            ],
        ),
        (
            [user("New task:\na\nError:\nno")],
            [UserMessage("a"), ToolResult("tool", "Error:\nno", call_missing=True, reply_missing=True)],
        ),
        (
            [user("New task:\na"), {"role": "assistant", "content": "Calling tools:\nnonsense("}],
            [UserMessage("a"), AssistantMessage("")],
        ),
        # without a smolagents task this is an ordinary message
        (["Observation:\nbees"], [UserMessage("Observation:\nbees")]),
    ],
)
def test_messages_become_entries(messages: list[Any], entries: list[Entry]) -> None:
    assert list(build_request(*messages).entries) == entries


def test_current_turn_begins_after_the_last_user_message() -> None:
    said = {"role": "assistant", "content": "", "tool_calls": [CALL]}
    result = {"role": "tool", "tool_call_id": "c1", "content": "f"}
    request = build_request({"role": "system", "content": "s"}, "a", said, result, "b", said, result)
    assert request.user_text == "b"
    assert request.calls == [LS]
    assert request.results == [ToolResult("ls", "f", arguments=LS.arguments)]
    assert request.system == "s"
    assert request.has_replies
    assert not build_request("a").has_replies


def test_options_are_read_and_unknown_keys_ignored() -> None:
    request = build_request(
        "a", tools=[tool("ls", "Lists.", path=STRING)], stream=True, stream_options={"include_usage": True}
    )
    parameters = {"type": "object", "properties": {"path": STRING}, "required": ["path"]}
    assert request.tools == (Tool("ls", "Lists.", parameters),)
    assert (request.stream, request.include_usage, request.schema, request.tool_required) == (True, True, None, False)
    assert build_request("a", response_format={"type": "json_object"}).schema == {"type": "object"}
    assert build_request("a", temperature=1, seed=7, unknown={}).model == "any"


def test_digest_depends_on_the_conversation_only() -> None:
    assert build_request("a").digest == build_request("a", stream=True).digest
    assert build_request("a").digest != build_request("b").digest


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"messages": 1}', b'{"messages": [{"role": 1}]}', b"\xff"])
def test_invalid_body_is_a_bad_request(body: bytes) -> None:
    with pytest.raises(BadRequest, match="not a chat completion request"):
        read_request(body)
