"""What the measuring process and the neighbour's own processes say to each other: one JSON line each."""

from typing import Literal

import msgspec

Kind = Literal["streams", "requests", "flood"]


class Order(msgspec.Struct, kw_only=True):
    """What a process of the neighbour is to do until its standard input ends."""

    kind: Kind
    port: int
    key: str
    runs: int
    """As many as she may have at once."""
    streams: int
    body_bytes: int


class Report(msgspec.Struct, kw_only=True):
    """What came of it: answers by their kind of request and their status, `body 200` say."""

    answers: dict[str, int] = {}

    def count(self, what: str) -> None:
        self.answers[what] = self.answers.get(what, 0) + 1
