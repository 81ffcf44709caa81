"""Converts files in tools' results, and the images that a user sends, between smolagents and Limelight.

`result_of` is called in the agent's thread, because reading and encoding files takes time.
"""

import base64
import io
import weakref
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from PIL import Image

from limelight.errors import LimelightError
from limelight.json_values import safe_text
from limelight.messages import InlineFile, Message, files_of
from limelight.sources.base import FileMade
from limelight.sources.image_budget import ImageLease
from limelight.sources.tool_results import ToolResult, tool_result

ENCODED = "limelight_encoded"
"""Name of the attribute of an image with the bytes of the file that it was opened from."""
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
"""Formats of images that users send. Pillow knows many more, whose decoders are less tested."""


def result_of(output: Any, name: str) -> ToolResult:
    """Convert the return value of a tool to JSON and files. `name` is used for files without a name.

    Images are encoded immediately, because the agent may continue to draw in them.
    """
    value, files = tool_result(_unwrap(output), name=name)
    return ToolResult(value, [encoded for file in files if (encoded := _encoded(file)) is not None])


def _encoded(file: FileMade) -> FileMade | None:
    if isinstance(file.data, bytes):
        return file
    try:
        return msgspec.structs.replace(file, data=file.data())
    except Exception:  # a broken image
        return None


def _unwrap(output: Any) -> Any:
    """Unwrap smolagents' classes for texts, images and audio."""
    match type(output).__name__:
        case "AgentText":
            return str.__str__(output)
        case "AgentImage":
            return _image_of(output)
        case "AgentAudio":
            return _audio_block(output)
        case _:
            return output


def _image_of(output: Any) -> Any:
    try:
        return output.to_raw()
    except Exception:  # the image is not on this machine
        return safe_text(output)


def _audio_block(output: Any) -> Any:
    try:
        data = Path(output.to_string()).read_bytes()
    except Exception:  # a library is missing, or the audio is not on this machine
        return safe_text(output)
    return {"type": "audio", "data": base64.b64encode(data).decode(), "mime_type": "audio/wav"}


class SentFiles(NamedTuple):
    """The files of a user's message: images for the agent, and the names of all others."""

    images: list[Any]
    """The images as Pillow images; smolagents accepts no other files."""
    others: list[str]
    """The names of the files that are not images."""


def sent_files(message: Message, lease: ImageLease) -> SentFiles:
    """Return the images of a user's message, and the names of its other files.

    Images for which the `lease` of the turn has no pixels left count as other files. Raises TooManyBytes if other turns
    have taken the pixels.
    """
    files = SentFiles([], [])
    for file in files_of(message):
        image = _decoded(file, lease)
        if image is None:
            files.others.append(file.name)
        else:
            files.images.append(image)
    return files


def open_encoded(data: bytes) -> Any:
    """Open the bytes of a file as a Pillow image, which reads only its size. Raises all kinds of errors.

    smolagents applies `deepcopy` to all messages before each request to the model. It gets the image itself, because a
    copy would need the memory of the pixels three times.
    """
    image: Any = Image.open(io.BytesIO(data), formats=FORMATS)
    found = weakref.ref(image)

    def get_image(_: Any) -> Any:
        return found()

    setattr(image, ENCODED, data)
    image.__deepcopy__ = get_image
    return image


def _decoded(file: InlineFile, lease: ImageLease) -> Any:
    """Return a file as a Pillow image; None if it is not an image that can be shown, or has too many pixels."""
    if file.data is None:
        return None
    try:
        image = open_encoded(file.data)
        if not lease.reserve(image.width * image.height):
            return None
        image.load()
    except LimelightError:
        raise
    except Exception:  # decoders raise all kinds of errors for a broken image
        return None
    return image
