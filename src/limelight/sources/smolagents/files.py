"""The pictures of a message, as smolagents wants them: Pillow's images. Other files it cannot take."""

import io
from typing import Any, NamedTuple

from PIL import Image

from limelight.messages import InlineFile, Message, files_of


class Pictures(NamedTuple):
    """What came with a message."""

    images: list[Any]
    left_out: list[str]
    """The names of what cannot be passed on."""


def pictures_of(message: Message) -> Pictures:
    """Sort what came with a message."""
    pictures = Pictures([], [])
    for file in files_of(message):
        image = _image(file)
        if image is None:
            pictures.left_out.append(file.name)
        else:
            pictures.images.append(image)
    return pictures


def _image(file: InlineFile) -> Any:
    if file.data is None:
        return None
    try:
        image = Image.open(io.BytesIO(file.data))
        image.load()
    except Exception:  # whatever a broken picture makes its decoder raise
        return None
    return image
