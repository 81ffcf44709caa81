"""Images that users send to an agent of smolagents are decoded within a limit."""

import base64
import copy
import io

import pytest
from PIL import Image

from limelight.messages import Message
from limelight.sources.image_budget import ImageBudget, separate_lease
from limelight.sources.smolagents.files import open_encoded, sent_files


def image_part(width: int, height: int, format_: str = "PNG") -> dict[str, object]:
    buffer = io.BytesIO()
    Image.new("L", (width, height)).save(buffer, format_)
    url = f"data:image/{format_.lower()};base64," + base64.b64encode(buffer.getvalue()).decode()
    return {"type": "image_url", "image_url": {"url": url}}


@pytest.mark.requirement("images-bounded")
def test_images_beyond_the_pixels_of_a_turn_are_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [image_part(8, 8), image_part(7, 6), image_part(6, 6), image_part(9, 99)]
    loaded: list[tuple[int, int]] = []
    load = Image.Image.load

    def noted_load(image: Image.Image) -> object:
        loaded.append(image.size)
        return load(image)

    monkeypatch.setattr(Image.Image, "load", noted_load)
    sent = sent_files(Message(role="user", content=parts), ImageBudget(100).lease("ann"))
    assert [image.size for image in sent.images] == [(8, 8), (6, 6)]
    assert len(sent.others) == 2
    assert set(loaded) == {(8, 8), (6, 6)}


def test_only_common_formats_are_decoded() -> None:
    sent = sent_files(
        Message(role="user", content=[image_part(4, 4, "WEBP"), image_part(4, 4, "PCX")]), separate_lease()
    )
    assert [image.format for image in sent.images] == ["WEBP"]
    assert len(sent.others) == 1


def test_copy_of_an_image_for_a_request_to_the_model_is_the_image_itself() -> None:
    buffer = io.BytesIO()
    Image.new("L", (4, 4)).save(buffer, "PNG")
    image = open_encoded(buffer.getvalue())
    assert copy.deepcopy({"image": image})["image"] is image
