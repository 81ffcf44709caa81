"""The OpenAI-compatible chat model of LangChain, which keeps what a model says while it thinks.

`ChatOpenAI` drops `reasoning_content`, as OpenAI itself does not send it; many other servers do.
"""

from typing import Any

import openai
from langchain_openai import ChatOpenAI

from limelight.builtin.agent_config import Kit


class ThinkingChat(ChatOpenAI):
    """Puts `reasoning_content` where other chat models of LangChain have it: into `additional_kwargs`."""

    def _convert_chunk_to_generation_chunk(
        self, chunk: dict[str, Any], default_chunk_class: type, base_generation_info: dict[str, Any] | None
    ) -> Any:
        base: Any = super()
        made = base._convert_chunk_to_generation_chunk(chunk, default_chunk_class, base_generation_info)
        thought = _thought_in(chunk)
        if made is not None and thought:
            made.message.additional_kwargs["reasoning_content"] = thought
        return made


def _thought_in(chunk: dict[str, Any]) -> str:
    choices: list[Any] = chunk.get("choices") or [{}]
    delta: Any = choices[0].get("delta")
    return str(delta.get("reasoning_content") or "") if delta else ""


def chat_model(kit: Kit) -> Any:
    make: Any = ThinkingChat
    http: Any = openai.DefaultAsyncHttpxClient()  # LangChain's own would be shared, and nobody's to close
    kit.closing.append(http.aclose)
    choice = kit.model
    return make(
        model=choice.model, base_url=choice.base_url, api_key=choice.key, stream_usage=True, http_async_client=http
    )
