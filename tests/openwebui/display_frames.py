"""Frames into a display of the pipe, without server and loop."""

from collections.abc import Callable
from typing import Any

from tests.openwebui.function_rules import Chunk, Json, delivered, pipe_module
from tests.openwebui.output import fold


class Shown:
    """One display and what it gave so far."""

    def __init__(self, display: str = "native", clock: Callable[[], float] = lambda: 0.0) -> None:
        module = pipe_module()
        self.story = module.RunState()
        self.display = {
            "native": lambda: module.NativeDisplay(self.story, lambda: "run_0", clock),
            "collapse": lambda: module.CollapseDisplay(self.story, lambda: "run_0", show_steps=True, clock=clock),
            "details": lambda: module.DetailsDisplay(self.story, clock),
        }[display]()
        self.chunks: list[Chunk] = []

    def feed(self, kind: str, **data: Any) -> None:
        frame = pipe_module().Frame(kind, data)
        self.story.feed(frame)
        self.display.feed(frame)

    def flush(self) -> list[Chunk]:
        """What is new."""
        found = [delivered(chunk) for chunk in self.display.flush()]
        self.chunks += found
        return found

    def close(self) -> None:
        self.display.close()
        self.flush()

    @property
    def items(self) -> list[Json]:
        return fold(delivered(chunk) for chunk in self.chunks)

    @property
    def names(self) -> list[str]:
        """What the rows say, in their order."""
        return [item["name"] for item in self.items if item["type"] == "function_call"]

    @property
    def text(self) -> str:
        return "".join(chunk for chunk in self.chunks if isinstance(chunk, str))
