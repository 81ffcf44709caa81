"""Conversion of tool results into values and files."""

from typing import Any

import pytest
from PIL import Image

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
