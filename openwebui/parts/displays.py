"""The displays by their names."""

import time
from collections.abc import Callable

from openwebui.parts.collapse import CollapseDisplay
from openwebui.parts.details import DetailsDisplay
from openwebui.parts.display import Display
from openwebui.parts.native import NativeDisplay
from openwebui.parts.run_state import Story

TEXT = "text"
"""For callers who are not in front of a chat. Nobody can choose it."""


def display_of(name: str, story: Story, run_id: Callable[[], str]) -> Display:
    match name:
        case "collapse" | "plain":
            return CollapseDisplay(story, run_id, time.monotonic, show_steps=name == "collapse")
        case "details":
            return DetailsDisplay(story, time.monotonic)
        case "native":
            return NativeDisplay(story, run_id, time.monotonic)
        case _:
            return DetailsDisplay(story, time.monotonic, blocks=False)
