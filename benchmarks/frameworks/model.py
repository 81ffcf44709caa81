"""A model that costs nothing: a reply of many tokens, encoded beforehand and written at once to whoever asks.

A process of its own (`python -m benchmarks.frameworks.model PORT`), so that it costs the measured one no more than any
model does. It speaks as much of OpenAI's API as the frameworks need. Below `/calling` the reply ends in a call of
`final_answer`, which is how agents of smolagents end. `POST /length/600` says how long replies are from now on.
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
DONE = b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n"
_BODY = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_LENGTH = re.compile(rb"POST /length/(\d+) ")


def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
    """One chunk of a stream."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return _framed(json.dumps({**_stamp(), "choices": [choice]}))


def reply(tokens: int, *, calls: bool) -> bytes:
    """The whole response."""
    opening = chunk({"role": "assistant", "content": ""})
    end = chunk({"tool_calls": [CALL]}) + chunk({}, "tool_calls") if calls else chunk({}, "stop")
    usage = {"prompt_tokens": 1, "completion_tokens": tokens, "total_tokens": tokens + 1}
    cost = _framed(json.dumps({**_stamp(), "choices": [], "usage": usage}))
    return b"".join([HEAD, opening, *[chunk({"content": TOKEN})] * tokens, end, cost, _framed("[DONE]"), b"0\r\n\r\n"])


def _stamp() -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "canned"}


def _framed(data: str) -> bytes:
    frame = f"data: {data}\n\n".encode()
    return b"%x\r\n%b\r\n" % (len(frame), frame)


class Replies:
    """The two replies of the length that was asked for last, with and without a call."""

    def __init__(self) -> None:
        self.take(0)

    def take(self, tokens: int) -> None:
        self._by_end = {calls: reply(tokens, calls=calls) for calls in (False, True)}

    def to(self, head: bytes) -> bytes:
        """The whole response to a request."""
        length = _LENGTH.match(head)
        if length:
            self.take(int(length[1]))
            return DONE
        return self._by_end[b"/calling/" in head.partition(b"\r\n")[0]]


class Canned(asyncio.Protocol):
    """One connection: as many requests as come, one after another."""

    def __init__(self, replies: Replies) -> None:
        self._replies = replies
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        length = _BODY.search(head)
        if not end or len(body) < int(length[1] if length else 0):
            return
        self._received = b""
        self._transport.write(self._replies.to(head))


async def main(port: int) -> None:
    replies = Replies()
    server = await asyncio.get_running_loop().create_server(lambda: Canned(replies), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
