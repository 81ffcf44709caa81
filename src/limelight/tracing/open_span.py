"""A span that has begun and not ended: what is known of it so far. Pure."""

import msgspec

from limelight.tracing.conventions import Said
from limelight.tracing.span import SpanEvent


class Tokens(msgspec.Struct):
    """What models were given and what they gave, as far as somebody said so."""

    model: str = ""
    given: int = 0
    made: int = 0
    known: bool = False

    def add(self, given: int, made: int, model: str = "") -> None:
        self.model = model or self.model
        self.given += given
        self.made += made
        self.known = True

    @property
    def attributes(self) -> Said:
        return {"gen_ai.usage.input_tokens": self.given, "gen_ai.usage.output_tokens": self.made} if self.known else {}


class OpenSpan(msgspec.Struct, kw_only=True):
    """Of an agent, a step or a call."""

    name: str
    span_id: int
    parent_id: int | None
    parent_is_remote: bool = False
    start_ns: int
    attributes: Said
    events: list[SpanEvent] = []
    tokens: Tokens = msgspec.field(default_factory=Tokens)
