"""Feeds frames to a display of the pipe, without server and event loop."""

from collections.abc import Callable
from typing import Any

from tests.openwebui.function_rules import Chunk, Json, pipe_module, through_json
from tests.openwebui.output_items import fold_chunks


class DisplayRecorder:
    """A display and all chunks that it has returned."""

    def __init__(self, display: str = "native", clock: Callable[[], float] = lambda: 0.0) -> None:
        module = pipe_module()
        self.state = module.RunState()
        self.display = {
            "native": lambda: module.NativeDisplay(self.state, lambda: "run_0", clock),
            "collapse": lambda: module.CollapseDisplay(self.state, lambda: "run_0", show_steps=True, clock=clock),
            "plain": lambda: module.CollapseDisplay(self.state, lambda: "run_0", show_steps=False, clock=clock),
            "details": lambda: module.DetailsDisplay(self.state, clock),
        }[display]()
        self.chunks: list[Chunk] = []

    def feed(self, frame_type: str, **data: Any) -> None:
        frame = pipe_module().Frame(frame_type, data)
        self.state.feed(frame)
        self.display.feed(frame)

    def flush(self) -> list[Chunk]:
        """The new chunks."""
        chunks = [through_json(chunk) for chunk in self.display.flush()]
        self.chunks += chunks
        return chunks

    def close(self) -> None:
        self.display.close()
        self.flush()

    @property
    def items(self) -> list[Json]:
        return fold_chunks(through_json(chunk) for chunk in self.chunks)

    @property
    def names(self) -> list[str]:
        """The labels of the rows, in their order."""
        return [item["name"] for item in self.items if item["type"] == "function_call"]

    @property
    def text(self) -> str:
        return "".join(chunk for chunk in self.chunks if isinstance(chunk, str))
