"""The canned model: a server that answers each request at once with a reply that was encoded in advance.

It runs in a separate process (`python -m benchmarks.frameworks.canned_model PORT`), so that its CPU time is not
counted. It implements the part of OpenAI's API that the frameworks use. Below `/calling` the reply ends with a call of
`final_answer`, which ends a run of smolagents. `POST /length/600` sets the number of tokens of later replies.
"""

import asyncio
import json
import re
import sys
from typing import Any, cast

from benchmarks.workload import TOKEN

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
ANSWER = {"name": "final_answer", "arguments": '{"answer": "done"}'}
CALL = {"index": 0, "id": "call_1", "type": "function", "function": ANSWER}
NO_CONTENT = b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n"
_CONTENT_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_LENGTH = re.compile(rb"POST /length/(\d+) ")


def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
    """Return one chunk of a stream as bytes."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return _framed(json.dumps({**_envelope(), "choices": [choice]}))


def reply(tokens: int, *, calls: bool) -> bytes:
    """Return a complete response as bytes."""
    first = chunk({"role": "assistant", "content": ""})
    end = chunk({"tool_calls": [CALL]}) + chunk({}, "tool_calls") if calls else chunk({}, "stop")
    usage = {"prompt_tokens": 1, "completion_tokens": tokens, "total_tokens": tokens + 1}
    usage_chunk = _framed(json.dumps({**_envelope(), "choices": [], "usage": usage}))
    return b"".join(
        [HEAD, first, *[chunk({"content": TOKEN})] * tokens, end, usage_chunk, _framed("[DONE]"), b"0\r\n\r\n"]
    )


def _envelope() -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "canned"}


def _framed(data: str) -> bytes:
    frame = f"data: {data}\n\n".encode()
    return b"%x\r\n%b\r\n" % (len(frame), frame)


class CannedModel:
    """The encoded responses of the current length, with and without a tool call."""

    def __init__(self) -> None:
        self._set_length(0)

    def _set_length(self, tokens: int) -> None:
        self._replies = {calls: reply(tokens, calls=calls) for calls in (False, True)}

    def response(self, head: bytes) -> bytes:
        """Return the response to a request with this HTTP head."""
        length = _LENGTH.match(head)
        if length:
            self._set_length(int(length[1]))
            return NO_CONTENT
        return self._replies[b"/calling/" in head.partition(b"\r\n")[0]]


class ModelConnection(asyncio.Protocol):
    """One connection of a client, which sends its requests one after another."""

    def __init__(self, model: CannedModel) -> None:
        self._model = model
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        length = _CONTENT_LENGTH.search(head)
        if not end or len(body) < int(length[1] if length else 0):
            return
        self._received = b""
        self._transport.write(self._model.response(head))


async def main(port: int) -> None:
    model = CannedModel()
    server = await asyncio.get_running_loop().create_server(lambda: ModelConnection(model), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
