"""The endpoint, tested with the official client: replies complete and streamed, and errors."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import openai
import pytest
from openai import AsyncOpenAI

from limelight.errors import SetupError
from limelight.understudy.scripts import parse_scripts
from limelight.understudy.server import Understudy
from tests.understudy.request_builders import STRING, tool

ASK: Any = {"model": "whatever-1", "messages": [{"role": "user", "content": "Go on."}]}


@asynccontextmanager
async def understudy_client(script: str = "", key: str = "") -> AsyncGenerator[Any]:
    """A client of an understudy that plays the script, or improvises without one."""
    async with (
        Understudy(parse_scripts(script) if script else ()) as understudy,
        AsyncOpenAI(base_url=understudy.base_url, api_key=key or understudy.key, max_retries=0) as client,
    ):
        yield client


async def stream_chunks(client: Any, **options: Any) -> list[Any]:
    stream = await client.chat.completions.create(**ASK, stream=True, **options)
    return [chunk async for chunk in stream]


async def ask(client: Any, streaming: bool) -> Any:
    if streaming:
        return await stream_chunks(client)
    return await client.chat.completions.create(**ASK)


PARALLEL = """
- steps:
    - reasoning: I should look.
    - text: Let me look, für dich.
    - tool_calls:
        - {name: ls, arguments: {path: "/a/rather/long/path/é"}}
        - {name: grep, raw: '{"pattern": "unfinished'}
    - usage: {input: 12, output: 5}
"""


async def test_complete_reply_has_text_calls_and_usage() -> None:
    async with understudy_client(PARALLEL) as client:
        reply = await client.chat.completions.create(**ASK)
    choice = reply.choices[0]
    assert reply.model == "whatever-1"
    assert choice.message.content == "Let me look, für dich."
    assert choice.message.model_extra == {"reasoning_content": "I should look."}
    assert choice.finish_reason == "tool_calls"
    calls: Any = choice.message.tool_calls
    assert [call.function.name for call in calls] == ["ls", "grep"]
    assert json.loads(calls[0].function.arguments) == {"path": "/a/rather/long/path/é"}
    assert calls[1].function.arguments == '{"pattern": "unfinished'
    assert reply.usage is not None
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.total_tokens) == (12, 5, 17)


async def test_streamed_reply_has_text_and_calls_in_pieces() -> None:
    async with understudy_client(PARALLEL) as client:
        chunks = await stream_chunks(client)
    deltas = [chunk.choices[0].delta for chunk in chunks]
    assert deltas[0].role == "assistant"
    assert "".join(delta.content or "" for delta in deltas) == "Let me look, für dich."
    assert "".join(getattr(delta, "reasoning_content", "") for delta in deltas) == "I should look."
    fragments = [call for delta in deltas for call in delta.tool_calls or ()]
    assert [(call.index, call.function.name) for call in fragments if call.id] == [(0, "ls"), (1, "grep")]
    assert len([call for call in fragments if call.index == 0]) > 2
    texts = ["".join(call.function.arguments for call in fragments if call.index == at) for at in (0, 1)]
    assert texts == ['{"path": "/a/rather/long/path/é"}', '{"pattern": "unfinished']
    assert chunks[-1].choices[0].finish_reason == "tool_calls"
    assert all(chunk.usage is None for chunk in chunks)


async def test_usage_is_the_last_chunk_if_requested() -> None:
    async with understudy_client(PARALLEL) as client:
        chunks = await stream_chunks(client, stream_options={"include_usage": True})
    assert chunks[-1].choices == []
    assert chunks[-1].usage.total_tokens == 17
    assert all(chunk.usage is None for chunk in chunks[:-1])


async def test_stream_helper_of_the_client_accumulates_the_reply() -> None:
    """It raises an error for deltas that do not fit together."""
    async with understudy_client(PARALLEL) as client, client.chat.completions.stream(**ASK) as stream:
        final = await stream.get_final_completion()
    assert final.choices[0].message.content == "Let me look, für dich."
    assert len(final.choices[0].message.tool_calls or ()) == 2


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
        (403, openai.PermissionDeniedError),
        (404, openai.NotFoundError),
        (409, openai.ConflictError),
        (422, openai.UnprocessableEntityError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
        (503, openai.InternalServerError),
    ],
)
async def test_scripted_status_raises_the_error_of_the_client(
    status: int, error: type[openai.APIStatusError], streaming: bool
) -> None:
    script = f"- steps: [{{error: {{status: {status}, message: as scripted, type: t, code: c}}}}]"
    async with understudy_client(script) as client:
        with pytest.raises(error, match="as scripted") as caught:
            await ask(client, streaming)
    assert caught.value.status_code == status
    assert (caught.value.type, caught.value.code) == ("t", "c")


async def test_error_in_a_stream_raises_an_api_error() -> None:
    async with understudy_client("- steps: [{text: so far}, {error: {status: 500, message: no more}}]") as client:
        with pytest.raises(openai.APIError, match="no more"):
            await stream_chunks(client)
        with pytest.raises(openai.InternalServerError, match="no more"):
            await client.chat.completions.create(**ASK)


async def test_disconnect_in_a_stream_delivers_the_text_before_it(caplog: pytest.LogCaptureFixture) -> None:
    text = ""
    async with understudy_client("- steps: [{text: three words only}, {cut: true}, {text: never}]") as client:
        stream = await client.chat.completions.create(**ASK, stream=True)
        with pytest.raises(openai.APIConnectionError):
            async for chunk in stream:
                text += chunk.choices[0].delta.content or ""
    assert text == "three words only"
    assert caplog.messages == []


async def test_disconnect_in_a_complete_reply_raises_a_connection_error(caplog: pytest.LogCaptureFixture) -> None:
    async with understudy_client("- steps: [{text: x}, {cut: true}]") as client:
        with pytest.raises(openai.APIConnectionError):
            await client.chat.completions.create(**ASK)
    assert caplog.messages == []


@pytest.mark.parametrize("streaming", [False, True])
async def test_wrong_key_is_an_authentication_error(streaming: bool) -> None:
    async with understudy_client(key="wrong") as client:
        with pytest.raises(openai.AuthenticationError, match="does not know this API key") as caught:
            await ask(client, streaming)
        assert caught.value.code == "invalid_api_key"
        with pytest.raises(openai.AuthenticationError):
            await client.models.list()


async def test_list_of_models() -> None:
    async with understudy_client() as client:
        assert [model.id async for model in client.models.list()] == ["understudy"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/chat/completions", b"{", 400),
        ("POST", "/chat/completions", b"{}", 400),
        ("POST", "/chat/completions", b'{"messages":[]}', 400),
        ("POST", "/chat/completions", b'{"messages":[{"content":"x"}]}', 400),
        ("GET", "/chat/completions", b"", 405),
        ("POST", "/embeddings", b"{}", 404),
    ],
)
async def test_invalid_request_gets_an_error_in_the_format_of_openai(
    method: str, path: str, body: bytes, status: int
) -> None:
    async with Understudy() as understudy, httpx.AsyncClient(trust_env=False) as http:
        headers = {"authorization": f"Bearer {understudy.key}"}
        response = await http.request(method, understudy.base_url + path, content=body, headers=headers)
    assert response.status_code == status
    assert set(response.json()["error"]) == {"message", "type", "param", "code"}
    assert response.json()["error"]["message"]


@pytest.mark.requirement("understudy-deterministic")
@pytest.mark.parametrize("streaming", [False, True])
async def test_equal_requests_get_equal_replies(streaming: bool) -> None:
    body = {**ASK, "stream": streaming, "tools": [tool("ls", path=STRING), tool("grep", pattern=STRING)]}
    async with Understudy(key="k") as understudy, httpx.AsyncClient(trust_env=False) as http:
        url, headers = f"{understudy.base_url}/chat/completions", {"authorization": "Bearer k"}
        replies = [(await http.post(url, json=body, headers=headers)).content for _ in range(2)]
    assert replies[0] == replies[1]
    assert replies[0]


async def test_many_clients_play_one_script_concurrently() -> None:
    async with understudy_client("- steps: [{delay: 0.001}, {text: one two three four}]") as client:
        replies = await asyncio.gather(*(stream_chunks(client) for _ in range(20)))
    texts = {"".join(chunk.choices[0].delta.content or "" for chunk in chunks) for chunks in replies}
    assert texts == {"one two three four"}


async def test_each_understudy_has_its_own_port_and_key() -> None:
    async with Understudy() as one, Understudy() as other:
        assert one.base_url != other.base_url
        assert one.key != other.key
        with pytest.raises(SetupError, match=f"port {one.port} is taken"):
            await Understudy(port=one.port).__aenter__()


async def test_reply_ends_when_the_client_disconnects(caplog: pytest.LogCaptureFixture) -> None:
    """Otherwise the server would cancel it at shutdown and log that."""
    async with Understudy(parse_scripts("- steps: [{delay: 60}, {text: late}]"), key="k") as understudy:
        client: Any = AsyncOpenAI(base_url=understudy.base_url, api_key="k", max_retries=0)
        stream = await client.chat.completions.create(**ASK, stream=True)
        await stream.close()
        await client.close()
    assert caplog.messages == []


async def test_end_of_the_understudy_ends_a_delayed_reply() -> None:
    loop = asyncio.get_running_loop()
    async with Understudy(parse_scripts("- steps: [{delay: 60}, {text: late}]"), key="k") as understudy:
        client: Any = AsyncOpenAI(base_url=understudy.base_url, api_key="k", max_retries=0)
        stream = await client.chat.completions.create(**ASK, stream=True)
        began = loop.time()
    assert loop.time() - began < 20
    await stream.close()
    await client.close()


async def test_pace_delays_each_word_of_an_improvised_reply() -> None:
    async with Understudy(key="k", pace=0.01) as understudy, httpx.AsyncClient(trust_env=False) as http:
        body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Say something about bees"}]}
        began = time.monotonic()
        answer = await http.post(
            f"{understudy.base_url}/chat/completions", json=body, headers={"authorization": "Bearer k"}
        )
        words = answer.text.count('"content"')
        assert words > 10
        assert time.monotonic() - began >= words * 0.01 * 0.5
