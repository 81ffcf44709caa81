"""Conversion of tool results into values and files."""

import base64
from typing import Any

import pytest
from PIL import Image

from limelight.json_values import json_value
from limelight.sources.tool_results import tool_result

PNG = b"\x89PNG\r\n"


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "1", "F", "CMYK"])
def test_image_is_encoded_when_its_file_is_read(mode: str) -> None:
    result, (file,) = tool_result(Image.new(mode, (3, 2)), name="bee", call_id="c1")
    assert (result, file.name, file.media_type, file.call_id) == (
        "[bee.png, 3 x 2 pixels]",
        "bee.png",
        "image/png",
        "c1",
    )
    assert callable(file.data) and file.data().startswith(PNG)


def test_placeholders_replace_images_among_texts() -> None:
    parts: list[Any] = ["Look:", Image.new("RGB", (1, 1)), Image.new("RGB", (2, 2)), b"abc"]
    result, files = tool_result(parts, name="bee")
    assert result == "Look:\n[bee.png, 1 x 1 pixels]\n[bee-2.png, 2 x 2 pixels]\n[bee-3.bin, 3 bytes]"
    assert [file.name for file in files] == ["bee.png", "bee-2.png", "bee-3.bin"]


class Broken(Image.Image):
    """An image without a size."""

    @property
    def size(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        raise RuntimeError("no picture")

    def __str__(self) -> str:
        return "<broken>"


def test_broken_image_becomes_its_text() -> None:
    assert tool_result(Broken()) == ("<broken>", [])


# Files inside of dicts and lists


def test_placeholders_replace_files_at_any_place_in_a_dict() -> None:
    value = {"caption": "A bee", "image": Image.new("RGB", (3, 2)), "more": [{"pdf": b"%PDF-1"}, (PNG, "text")]}
    result, files = tool_result(value, name="bee", call_id="c1", agent_id="a1")
    assert result == {
        "caption": "A bee",
        "image": "[bee.png, 3 x 2 pixels]",
        "more": [{"pdf": "[bee-2.pdf, 6 bytes]"}, ["[bee-3.png, 6 bytes]", "text"]],
    }
    assert [(file.name, file.media_type, file.call_id, file.agent_id) for file in files] == [
        ("bee.png", "image/png", "c1", "a1"),
        ("bee-2.pdf", "application/pdf", "c1", "a1"),
        ("bee-3.png", "image/png", "c1", "a1"),
    ]
    assert value["more"] == [{"pdf": b"%PDF-1"}, (PNG, "text")]  # the tool's own value is not changed


def test_placeholder_replaces_a_content_block_in_a_dict_of_a_list() -> None:
    block = {"type": "image", "base64": base64.b64encode(PNG).decode(), "mime_type": "image/png"}
    result, (file,) = tool_result([{"page": 1, "picture": block}], name="bee")
    assert (result, file.data) == ([{"page": 1, "picture": "[bee.png, 6 bytes]"}], PNG)


@pytest.mark.parametrize(
    "value",
    [
        {"hash": b"\x00" * 32},
        {"entries": [{"type": "file", "name": "a.txt", "data": "abcdefgh"}]},
        {"deep": {"er": [{"x": [1, 2.5, None, True]}]}},
    ],
)
def test_short_bytes_and_data_that_resembles_a_block_stay_in_the_result(value: Any) -> None:
    assert tool_result(value) == (json_value(value), [])


def test_large_bytes_of_an_unknown_type_in_a_dict_become_a_file() -> None:
    result, (file,) = tool_result({"data": b"\x00" * 2_000}, name="dump")
    assert (result, file.media_type) == ({"data": "[dump.bin, 2,000 bytes]"}, "application/octet-stream")


class Raising(dict[str, Any]):
    """A dict that cannot be read."""

    def items(self) -> Any:
        raise RuntimeError("no items")


def test_search_for_files_ends_in_values_that_are_large_deep_cyclic_or_unreadable() -> None:
    deep: Any = PNG
    for _ in range(5_000):
        deep = [deep]
    cyclic: dict[str, Any] = {}
    cyclic["self"] = cyclic
    wide = {"rows": [[number] for number in range(20_000)], "image": PNG}
    for value in (deep, {"deep": deep}, cyclic, wide, Raising(image=PNG)):
        assert tool_result(value).files == []


def test_files_beyond_the_limit_stay_in_the_result() -> None:
    result, files = tool_result({"rows": [PNG] * 200})
    assert len(files) == 100
    assert str(result).count(" bytes]") == str(result).count(base64.b64encode(PNG).decode()) == 100
