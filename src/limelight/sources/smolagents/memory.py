"""The memory of an agent between turns: made small, measured, and its images admitted to the next turn.

Between turns, images are kept as encoded files that Pillow has opened and not decoded; Pillow decodes them when the
agent shows them to its model.
"""

# pyright: reportMissingTypeStubs=false

import io
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, cast

from PIL import Image

from limelight.sources.image_budget import ImageLease
from limelight.sources.smolagents.files import ENCODED, open_encoded

IMAGE_FIELDS = ("task_images", "observations_images")
"""The fields of memory steps that are lists of images."""
BYTES_PER_PIXEL = 4
SHARED = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)
"""Types of objects that belong to the program, and not to a conversation."""


def agents_of(agent: Any) -> Iterator[Any]:
    """Yield an agent and its managed agents."""
    yield agent
    for managed in agent.managed_agents.values():
        yield from agents_of(managed)


def shrink(agent: Any) -> None:
    """Make the memory of an agent and of its managed agents small, after a turn."""
    for one in agents_of(agent):
        release_inputs(one.memory.steps)
        for step in one.memory.steps:
            _release_frames(getattr(step, "error", None))
        images = {key: _encoded(image) for key, image in _images_in(one.memory.steps).items()}
        _replace_images(one.memory.steps, images)


def _images_in(steps: Iterable[Any]) -> dict[int, Any]:
    """Return the images of memory steps by their `id()`, because smolagents adds those of a task to all its steps."""
    return {id(image): image for step in steps for field in IMAGE_FIELDS for image in getattr(step, field, None) or ()}


def _replace_images(steps: Iterable[Any], replacements: Mapping[int, Any]) -> None:
    """Replace the images of memory steps by those in `replacements`, by `id()`. Remove all others."""
    for step in steps:
        for field in IMAGE_FIELDS:
            if images := getattr(step, field, None):
                kept = [replacements[id(image)] for image in images if id(image) in replacements]
                setattr(step, field, kept or None)


def release_inputs(steps: Iterable[Any]) -> None:
    """Remove the model's input from memory steps, for each of which smolagents keeps a copy of the conversation."""
    for step in steps:
        if getattr(step, "model_input_messages", None):
            step.model_input_messages = []


def _release_frames(error: BaseException | None) -> None:
    """Remove the traceback and the causes of an error, because they refer to everything that the step has used."""
    if error is not None:
        error.__traceback__ = error.__cause__ = error.__context__ = None


def _encoded(image: Any) -> Any:
    """Return an image that is not decoded; the image itself if no format can represent it."""
    data = getattr(image, ENCODED, None)
    try:
        if data is None:
            buffer = io.BytesIO()
            image.save(buffer, format="PNG")
            data = buffer.getvalue()
        encoded = open_encoded(data)
    except Exception:  # images may be of any mode, and of classes of the agent
        return image
    return encoded if (encoded.mode, encoded.size) == (image.mode, image.size) else image


def memory_bytes(agent: Any) -> int:
    """Return the approximate size of what an agent and its managed agents hold between turns, after `shrink`."""
    roots: list[Any] = []
    for one in agents_of(agent):
        executor = getattr(one, "python_executor", None)
        roots += [one.memory.steps, one.state, getattr(one, "task", None), getattr(executor, "state", None)]
    return size_of(roots)


def size_of(value: Any) -> int:
    """Return the approximate size of a value and of all that it refers to, in bytes."""
    total = 0
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if value is None or id(value) in seen or isinstance(value, SHARED):
            continue
        seen.add(id(value))
        total += _own_size(value)
        if isinstance(value, dict):
            items = cast("dict[Any, Any]", value)
            waiting += [*items.keys(), *items.values()]
        elif isinstance(value, list | tuple | set | frozenset):
            waiting += cast("Iterable[Any]", value)
        elif not isinstance(value, Image.Image):
            waiting += getattr(value, "__dict__", {}).values()
    return total


def _own_size(value: Any) -> int:
    if isinstance(value, Image.Image):
        data = getattr(value, ENCODED, None)
        return value.width * value.height * BYTES_PER_PIXEL if data is None else len(data)
    try:
        return max(sys.getsizeof(value), getattr(value, "nbytes", 0))
    except Exception:  # classes of the agent define it
        return 0


def admit_images(agent: Any, lease: ImageLease) -> int:
    """Reserve the pixels of all images in the memory of an agent, before a turn that shows them to its model.

    Images that are too many for a turn are removed from the memory, the oldest first. Return their number. Raises
    TooManyBytes if they are too many together with those of other turns.
    """
    steps: list[Any] = agent.memory.steps
    images = _images_in(steps)
    newest_first = reversed(images.items())
    admitted = {key: image for key, image in newest_first if lease.reserve(image.width * image.height)}
    if len(admitted) < len(images):
        _replace_images(steps, admitted)
    return len(images) - len(admitted)
