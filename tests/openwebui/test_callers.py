"""Who is not in front of a chat: callers of Open WebUI's API get text, with or without a stream."""

from pathlib import Path

import pytest

from tests import agents
from tests.faults.process import free_port
from tests.openwebui.chat import Chat, Seen
from tests.serving import Served, serving

QUESTION = [{"role": "user", "content": "go"}]


async def whole(url: str, model: str) -> str:
    reply = await Chat(url, model=model).call(QUESTION, Seen(), stream=False, metadata={})
    assert isinstance(reply, str)
    return reply


async def streamed(url: str, model: str) -> Seen:
    seen = Seen()
    reply = await Chat(url, model=model).call(QUESTION, seen, metadata={})
    assert not isinstance(reply, str)
    await seen.take(reply)
    assert seen.events == []
    return seen


async def test_without_a_stream_the_answer_is_a_text(served: Served) -> None:
    assert await whole(served.url, "default") == "".join(agents.WORDS)
    assert await whole(served.url, "worker") == "Done."


async def test_without_a_stream_a_failure_is_a_text_too(served: Served) -> None:
    assert (await whole(served.url, "crasher")).startswith("Error: The Limelight server says: ")
    down = await whole(f"http://127.0.0.1:{free_port()}", "default")
    assert down.startswith("Error: http://127.0.0.1:")


async def test_a_stream_without_a_chat_is_plain_text(served: Served) -> None:
    seen = await streamed(served.url, "worker")
    assert seen.text == "I begin. \n\nDone."
    assert [chunk for chunk in seen.chunks if not isinstance(chunk, str)] == []


async def test_a_stream_without_a_chat_says_that_it_failed(served: Served) -> None:
    seen = await streamed(served.url, "crasher")
    assert seen.text == "So far so good"
    assert "the wheel came off" in seen.errors[0]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_key_that_is_refused_is_said_to_them_too(tmp_path: Path, stream: bool) -> None:
    async with serving(agents.talker, data=tmp_path, auth__api_key="sesame") as served:
        if stream:
            assert "valve API_KEY" in (await streamed(served.url, "default")).errors[0]
        else:
            assert "valve API_KEY" in await whole(served.url, "default")
