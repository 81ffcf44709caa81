"""What a tool printed, in bounds: a chatty one must cost no more than it can show."""

KEPT_CHARS = 50_000
"""Kept of the beginning, and as much again of the end."""
LINE_CHARS = 200


class Printout:
    """The beginning and the end of what was printed, and its last line, which the row shows while the tool runs."""

    def __init__(self) -> None:
        self.last_line = ""
        self._open_line = ""
        self._head: list[str] = []
        self._head_room = KEPT_CHARS
        self._tail: list[str] = []
        self._tail_chars = 0
        self._left_out = 0

    def add(self, piece: str) -> None:
        self._read_lines(piece)
        if self._head_room:
            self._head.append(piece[: self._head_room])
        rest = piece[self._head_room :]
        self._head_room -= len(piece) - len(rest)
        self._tail.append(rest)
        self._tail_chars += len(rest)
        if self._tail_chars > 2 * KEPT_CHARS:
            self._cut()

    @property
    def text(self) -> str:
        """All of it, or both ends with a note between them."""
        self._cut()
        note = f"\n… ({self._left_out:,} characters are left out here)\n" if self._left_out else ""
        return f"{''.join(self._head)}{note}{''.join(self._tail)}"

    def is_in(self, result: str) -> bool:
        """Whether a result repeats it."""
        self._cut()
        head, tail = "".join(self._head), "".join(self._tail)
        ends = [head, tail] if self._left_out else [head + tail]
        return all(end.strip() in result for end in ends)

    def _read_lines(self, piece: str) -> None:
        lines = (self._open_line + piece).splitlines(keepends=True)
        self.last_line = next((line.strip() for line in reversed(lines) if line.strip()), self.last_line)[:LINE_CHARS]
        is_open = bool(lines) and lines[-1].splitlines() == lines[-1:]
        self._open_line = lines[-1][:LINE_CHARS] if is_open else ""

    def _cut(self) -> None:
        tail = "".join(self._tail)
        self._tail = [tail[-KEPT_CHARS:]]
        self._left_out += len(tail) - len(self._tail[0])
        self._tail_chars = len(self._tail[0])
