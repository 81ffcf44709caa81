"""How far a socket has come in its session's log. Pure.

What comes twice is dropped. A state that was told on coming back is put behind what was missed, so that nobody who
leaves at "completed" leaves before the answer. It must not know connections; `Socket` is the caller.
"""

import math
from collections.abc import Iterator

from limelight.client.models import State
from limelight.client.replies import Shown

Place = tuple[int, float]


class Progress:
    """The place of the last item that came, and the state that was told last."""

    def __init__(self, after: str | None) -> None:
        self.after = after
        """None as long as the beginning is the server's choice."""
        self._known: tuple[str, str | None] | None = None
        self._held: tuple[Place, State] | None = None

    def show(self, shown: Shown) -> Iterator[object]:
        """The item, if it is new, and the state that waited for it."""
        if self.after is None or place(shown.cursor) > place(self.after):
            self.after = shown.cursor
            yield shown.item
            yield from self._release()

    def tell(self, state: State) -> Iterator[State]:
        """A state that was told at its place. If it says nothing new, it is no news."""
        if self._held is not None:
            held, self._held = self._held[1], None
            yield from self.tell(held)
        if self._known != (known := (state.state, state.run_id)):
            self._known = known
            yield state

    def begin(self, state: State) -> None:
        """The state on the first connection, which everybody can look up."""
        self._known = (state.state, state.run_id)

    def hold(self, state: State, last: str) -> Iterator[State]:
        """A state that belongs behind the item with the cursor `last`."""
        self._held = (place(last), state)
        yield from self._release()

    def is_news(self, state: State) -> bool:
        return self._known != (state.state, state.run_id)

    def _release(self) -> Iterator[State]:
        if self._held is not None and place(self.after or "0") >= self._held[0]:
            held, self._held = self._held[1], None
            yield from self.tell(held)


def place(cursor: str) -> Place:
    """For comparing: `57` is the whole of Record 57, which comes behind `57.1`, a part of it."""
    seq, _, part = cursor.partition(".")
    try:
        return int(seq), int(part or 0) or math.inf
    except ValueError:
        return 0, 0
