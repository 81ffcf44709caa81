"""A reply in pieces and the same reply whole say the same."""

from typing import Any

from limelight.understudy.chunks import chunk_of, closing, completion, opening
from limelight.understudy.reply import CutPiece, FaultPiece, Reply, Tokens, called, spoken, thought
from tests.understudy.requests import request_of

REPLY = Reply((*thought("Let me see."), *spoken("Two  words\n"), *called(0, "c0", "ls", '{"path": "/a/b/c"}')))


def streamed(reply: Reply) -> list[Any]:
    request = request_of("a", stream_options={"include_usage": True})
    chunks = [chunk_of(piece, request) for piece in reply.pieces]
    return [opening(request), *(chunk for chunk in chunks if chunk is not None), *closing(reply, request)]


def test_pieces_and_whole_agree() -> None:
    chunks = streamed(REPLY)
    message = completion(REPLY, request_of("a"))["choices"][0]["message"]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    assert message["content"] == "".join(delta.get("content", "") for delta in deltas) == "Two  words\n"
    assert message["reasoning_content"] == "".join(delta.get("reasoning_content", "") for delta in deltas)
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    assert message["tool_calls"][0]["function"]["arguments"] == "".join(c["function"]["arguments"] for c in calls)
    assert message["tool_calls"][0]["id"] == "c0"
    assert {chunk["id"] for chunk in chunks} == {completion(REPLY, request_of("a"))["id"]}


def test_the_last_chunks_say_why_and_how_much() -> None:
    *_, last, usage = streamed(REPLY)
    assert last["choices"][0]["finish_reason"] == "tool_calls"
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == len(REPLY.pieces)
    assert usage["usage"]["total_tokens"] == usage["usage"]["prompt_tokens"] + len(REPLY.pieces)


def test_a_reply_without_words() -> None:
    whole = completion(Reply((), Tokens(1, 2)), request_of("a"))
    assert whole["choices"][0]["message"] == {"role": "assistant", "content": ""}
    assert whole["choices"][0]["finish_reason"] == "stop"
    assert whole["usage"] == {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


def test_faults() -> None:
    fault = FaultPiece(status=500, message="m", type="t", code="c")
    error = {"message": "m", "type": "t", "param": None, "code": "c"}
    assert chunk_of(fault, request_of("a")) == {"error": error}
    assert chunk_of(CutPiece(), request_of("a")) is None
