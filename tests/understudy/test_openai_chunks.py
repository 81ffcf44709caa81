"""Streamed chunks and the complete chat completion of a reply have the same content."""

from typing import Any

from limelight.understudy.openai_chunks import completion, first_chunk, last_chunks, piece_chunk
from limelight.understudy.replies import (
    DisconnectPiece,
    ErrorPiece,
    Reply,
    TokenUsage,
    call_pieces,
    reasoning_pieces,
    text_pieces,
)
from tests.understudy.request_builders import build_request

REPLY = Reply(
    (
        *reasoning_pieces("Let me see."),
        *text_pieces("Two  words\n"),
        *call_pieces(0, "c0", "ls", '{"path": "/a/b/c"}'),
    )
)


def stream_chunks(reply: Reply) -> list[Any]:
    request = build_request("a", stream_options={"include_usage": True})
    chunks = [piece_chunk(piece, request) for piece in reply.pieces]
    return [first_chunk(request), *(chunk for chunk in chunks if chunk is not None), *last_chunks(reply, request)]


def test_chunks_and_completion_have_the_same_content() -> None:
    chunks = stream_chunks(REPLY)
    message = completion(REPLY, build_request("a"))["choices"][0]["message"]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    assert message["content"] == "".join(delta.get("content", "") for delta in deltas) == "Two  words\n"
    assert message["reasoning_content"] == "".join(delta.get("reasoning_content", "") for delta in deltas)
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    assert message["tool_calls"][0]["function"]["arguments"] == "".join(c["function"]["arguments"] for c in calls)
    assert message["tool_calls"][0]["id"] == "c0"
    assert {chunk["id"] for chunk in chunks} == {completion(REPLY, build_request("a"))["id"]}


def test_last_chunks_carry_finish_reason_and_usage() -> None:
    *_, last, usage = stream_chunks(REPLY)
    assert last["choices"][0]["finish_reason"] == "tool_calls"
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == len(REPLY.pieces)
    assert usage["usage"]["total_tokens"] == usage["usage"]["prompt_tokens"] + len(REPLY.pieces)


def test_empty_reply_is_an_empty_message() -> None:
    whole = completion(Reply((), TokenUsage(1, 2)), build_request("a"))
    assert whole["choices"][0]["message"] == {"role": "assistant", "content": ""}
    assert whole["choices"][0]["finish_reason"] == "stop"
    assert whole["usage"] == {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


def test_error_is_an_error_body_and_disconnect_has_no_chunk() -> None:
    piece = ErrorPiece(status=500, message="m", type="t", code="c")
    error = {"message": "m", "type": "t", "param": None, "code": "c"}
    assert piece_chunk(piece, build_request("a")) == {"error": error}
    assert piece_chunk(DisconnectPiece(), build_request("a")) is None
