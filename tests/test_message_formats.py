"""Conversion of messages: to and from the formats of OpenAI, LangChain and pydantic-ai."""

import subprocess
import sys
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_openai import ChatOpenAI
from pydantic_ai import Agent
from pydantic_ai.messages import (
    BinaryContent,
    DocumentUrl,
    ImageUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from limelight.message_formats import (
    from_langchain,
    from_pydantic_ai,
    pydantic_ai_prompt,
    to_langchain,
    to_openai,
    to_pydantic_ai,
)
from limelight.messages import Message
from limelight.sources.history import CUT_OFF

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}
REMOTE = {"type": "image_url", "image_url": {"url": "https://example.org/bee.png"}}
PAPER = {"type": "file", "file": {"filename": "file", "file_data": "data:application/pdf;base64,aGVsbG8="}}
REMOTE_PAPER = {"type": "file", "file": {"filename": "file", "file_data": "https://example.org/a.pdf"}}
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a":2}'}}
FILES = [{"type": "text", "text": "see"}, PICTURE, REMOTE, PAPER, REMOTE_PAPER]
CONVERSATION = [
    Message(role="system", content="Be brief."),
    Message(role="user", content=FILES),
    Message(role="assistant", content="I add.", tool_calls=[CALL]),
    Message(role="tool", tool_call_id="c1", name="add", content="5"),
    Message(role="assistant", content="Five."),
    Message(role="user", content="Thanks."),
]
CUT = [
    Message(role="user", content="go"),
    Message(role="assistant", content=None, tool_calls=[{"function": {"name": "add", "arguments": "{"}}]),
    Message(role="user", content="again"),
]
"""A conversation whose call has no id, no valid arguments and no result."""


def test_formats_are_imported_when_they_are_needed() -> None:
    code = (
        "import sys, limelight.message_formats; assert not {'openai', 'langchain_core', 'pydantic_ai'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# OpenAI


def test_openai_messages_are_plain_dicts_without_unknown_fields() -> None:
    sent = Message(role="user", content="hi", id="m1", timestamp=5)
    assert to_openai([sent]) == [{"role": "user", "content": "hi"}]
    assert type(to_openai([sent])[0]) is dict


def test_openai_messages_keep_files_and_calls() -> None:
    converted: list[Any] = to_openai(CONVERSATION)
    assert converted[1]["content"] == FILES
    assert converted[2]["tool_calls"] == [CALL]
    assert converted[3] == {"role": "tool", "tool_call_id": "c1", "content": "5"}


def test_openai_messages_have_a_result_for_every_call() -> None:
    converted: list[Any] = to_openai(CUT)
    assert [message["role"] for message in converted] == ["user", "assistant", "tool", "user"]
    assert converted[1]["content"] == ""
    assert converted[1]["tool_calls"][0]["function"]["arguments"] == "{}"
    assert converted[2]["tool_call_id"] == converted[1]["tool_calls"][0]["id"]


# LangChain


def test_langchain_messages_have_their_classes_calls_and_files() -> None:
    system, user, call, result, answer, thanks = to_langchain(CONVERSATION)
    assert (type(system), system.content) == (SystemMessage, "Be brief.")
    assert (type(user), user.content) == (HumanMessage, FILES)
    assert isinstance(call, AIMessage)
    assert call.tool_calls == [{"name": "add", "args": {"a": 2}, "id": "c1", "type": "tool_call"}]
    assert isinstance(result, ToolMessage)
    assert (result.tool_call_id, result.name, result.content) == ("c1", "add", "5")
    assert [answer.text, thanks.text] == ["Five.", "Thanks."]


def test_langchain_result_of_a_call_that_was_cut_off_is_an_error() -> None:
    result = to_langchain(CUT)[2]
    assert isinstance(result, ToolMessage)
    assert (result.status, result.content) == ("error", CUT_OFF)


def test_langchain_model_sends_the_files_of_the_messages() -> None:
    model: Any = ChatOpenAI(model="x", api_key="k")  # pyright: ignore[reportArgumentType]
    payload = model._get_request_payload(to_langchain(CONVERSATION))
    assert payload["messages"][1]["content"] == FILES


def test_langchain_messages_are_converted_back() -> None:
    back = from_langchain(to_langchain(CONVERSATION))
    assert [(message.role, message.text) for message in back] == [
        (message.role, message.text) for message in CONVERSATION
    ]
    assert back[1]["content"] == FILES
    assert back[2]["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a": 2}'}
    assert back[3]["tool_call_id"] == "c1"


# pydantic-ai


def test_pydantic_ai_history_has_requests_and_responses_with_parts() -> None:
    first, call, result, answer, thanks = to_pydantic_ai(CONVERSATION)
    system, user = first.parts
    assert isinstance(system, SystemPromptPart) and system.content == "Be brief."
    assert isinstance(user, UserPromptPart)
    text, picture, remote, paper, remote_paper = user.content
    assert text == "see"
    assert isinstance(picture, BinaryContent) and (picture.data, picture.media_type) == (b"hello", "image/png")
    assert isinstance(paper, BinaryContent) and paper.media_type == "application/pdf"
    assert (remote, remote_paper) == (
        ImageUrl("https://example.org/bee.png"),
        DocumentUrl("https://example.org/a.pdf"),
    )
    assert [type(part) for part in call.parts] == [TextPart, ToolCallPart]
    assert isinstance(call.parts[1], ToolCallPart) and call.parts[1].args == {"a": 2}
    (returned,) = result.parts
    assert isinstance(returned, ToolReturnPart)
    assert (returned.tool_name, returned.content, returned.tool_call_id) == ("add", "5", "c1")
    assert isinstance(answer, ModelResponse) and isinstance(thanks, ModelRequest)


def test_pydantic_ai_history_is_valid_json_for_pydantic_ai() -> None:
    read = ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(to_pydantic_ai(CONVERSATION)))
    assert from_pydantic_ai(read) == CONVERSATION


def test_pydantic_ai_history_is_converted_back() -> None:
    assert from_pydantic_ai(to_pydantic_ai(CONVERSATION)) == CONVERSATION
    failed = from_pydantic_ai(to_pydantic_ai(CUT))[2]
    assert (failed.role, failed["status"], failed.text) == ("tool", "error", CUT_OFF)


def test_pydantic_ai_reasoning_is_left_out() -> None:
    assert from_pydantic_ai([ModelResponse(parts=[ThinkingPart("hm"), TextPart("Yes.")])]) == [
        Message(role="assistant", content="Yes.")
    ]


@pytest.mark.parametrize("messages", [CONVERSATION, CUT])
async def test_pydantic_ai_agent_continues_the_conversation(messages: list[Message]) -> None:
    seen: list[list[ModelMessage]] = []

    def reply(history: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        seen.append(history)
        return ModelResponse(parts=[TextPart("ok")])

    result = await Agent(FunctionModel(reply)).run(
        pydantic_ai_prompt(messages[-1]), message_history=to_pydantic_ai(messages[:-1])
    )
    assert result.output == "ok"
    assert [message.text for message in from_pydantic_ai(seen[0])][-1] == messages[-1].text
