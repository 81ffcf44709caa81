"""Messages: the text and the files of all forms of content."""

import base64
from typing import Any

import pytest

from limelight.messages import InlineFile, Message, files_of

PNG = b"\x89PNG\r\n\x1a\n"
PNG_URL = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"


def user(content: Any) -> Message:
    return Message(role="user", content=content)


def test_message_keeps_unknown_keys() -> None:
    message = Message({"role": "assistant", "content": None, "tool_calls": [1]})
    assert message["tool_calls"] == [1]
    assert message.role == "assistant"
    assert dict(message) == {"role": "assistant", "content": None, "tool_calls": [1]}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        (None, ""),
        ([], ""),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        (["a", {"type": "text", "text": "b"}], "a\nb"),
        ([{"type": "image_url", "image_url": {"url": PNG_URL}}, {"type": "text", "text": "see"}], "see"),
        ([{"type": "text", "text": None}, {"type": "text"}, {"type": "new", "new": 1}], ""),
        ([1, None, ["x"], {"type": "text", "text": "still here"}], "still here"),
    ],
)
def test_text_joins_the_text_parts(content: Any, text: str) -> None:
    assert user(content).text == text


def test_message_without_content_has_no_text() -> None:
    assert Message(role="user").text == ""


@pytest.mark.parametrize(
    ("part", "file"),
    [
        ({"type": "image_url", "image_url": {"url": PNG_URL}}, InlineFile("image", "image/png", PNG)),
        ({"type": "image_url", "image_url": PNG_URL}, InlineFile("image", "image/png", PNG)),
        (
            {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
            InlineFile("image", "image/*", None, "https://example.org/a.png"),
        ),
        (
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"}},
            InlineFile("a.pdf", "application/pdf", b"\0\0\0"),
        ),
        (
            {"type": "file", "file": {"name": "b.txt", "file_data": "data:,hello%20there"}},
            InlineFile("b.txt", "text/plain", b"hello there"),
        ),
        (
            {"type": "file", "file": {"file_data": "data:text/plain;charset=utf-8;base64,aGk="}},
            InlineFile("file", "text/plain", b"hi"),
        ),
    ],
)
def test_file_of_a_part_is_decoded(part: dict[str, Any], file: InlineFile) -> None:
    assert files_of(user(["look", {"type": "text", "text": "x"}, part])) == [file]


def test_invalid_data_url_is_a_file_without_bytes() -> None:
    assert files_of(user([{"type": "image_url", "image_url": {"url": "data:image/png;base64,A"}}])) == [
        InlineFile("image", "image/png", None)
    ]


@pytest.mark.parametrize(
    "content",
    [
        "text",
        None,
        [],
        ["a"],
        [{"type": "text", "text": "a"}],
        [{"type": "image_url"}],
        [{"type": "image_url", "image_url": {}}],
        [{"type": "image_url", "image_url": 5}],
        [{"type": "file", "file": {"file_id": "file-1"}}],
        [{"type": ["unhashable"]}],
        [{}],
        [5, None],
    ],
)
def test_other_parts_are_not_files(content: Any) -> None:
    assert files_of(user(content)) == []


def test_files_keep_their_order() -> None:
    parts = [{"type": "image_url", "image_url": {"url": f"https://example.org/{n}"}} for n in range(3)]
    assert [file.url for file in files_of(user(parts))] == [f"https://example.org/{n}" for n in range(3)]
