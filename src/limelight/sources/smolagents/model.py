"""A model that is listened to: its replies are streamed where it can stream, and every delta is told.

smolagents' own streaming redraws the terminal for every token, so the clone of an agent does not use it. The messages
that the model gets and the reply that the agent gets are those of an agent that does not stream; only halves of
characters, which nobody could send, are replaced.
"""

# pyright: reportMissingTypeStubs=false

import copy
from collections.abc import Iterator
from typing import Any

from smolagents.models import agglomerate_stream_deltas, remove_content_after_stop_sequences

from limelight.sources.smolagents.http_abort import Line, Lines
from limelight.sources.smolagents.observer import Observer
from limelight.sources.smolagents.outputs import all_sendable
from limelight.sources.smolagents.signals import ModelReplied, ModelSaid


def listened_to(model: Any, observer: Observer, agent_id: str, keep_empty: bool) -> Any:
    """A copy of the model whose `generate` tells what it hears. Connections and limits are shared with the original.

    `keep_empty`: whether a reply of nothing but calls has the content "", as with agents that stream, or None.
    """
    heard = copy.copy(model)
    name = str(getattr(model, "model_id", None) or "")
    streams = can_stream(model)
    lines = Lines(model)

    def generate(messages: Any, *args: Any, **kwargs: Any) -> Any:
        observer.check()
        messages = all_sendable(messages)
        if streams:
            speaking, line = lines.open()
            stream = speaking.generate_stream(messages, *args, **kwargs)
            message = _listen(stream, line, observer, agent_id)
            _as_if_whole(message, model, _stop_sequences(args, kwargs), keep_empty)
        else:
            message = model.generate(messages, *args, **kwargs)
        observer.tell(ModelReplied(agent_id, message, name, streams))
        return message

    heard.generate = generate
    return heard


def can_stream(model: Any) -> bool:
    """Whether `generate_stream` may stand in for `generate`: not if a subclass has a `generate` of its own."""
    if not callable(getattr(model, "generate_stream", None)) or "generate" in vars(model):
        return False
    bases = type(model).__mro__
    whole = next((at for at, base in enumerate(bases) if "generate" in vars(base)), len(bases))
    streamed = next((at for at, base in enumerate(bases) if "generate_stream" in vars(base)), 0)
    return streamed <= whole


def _listen(stream: Iterator[Any], line: Line, observer: Observer, agent_id: str) -> Any:
    deltas: list[Any] = []
    tell = observer.tell
    try:
        for delta in stream:
            deltas.append(delta)
            tell(ModelSaid(agent_id, delta))
    finally:
        close = getattr(stream, "close", None)
        if close is not None:
            close()
        line.hang_up()  # ends the request too, if the run was stopped
    return agglomerate_stream_deltas(deltas)


def _as_if_whole(message: Any, model: Any, stop_sequences: Any, keep_empty: bool) -> None:
    """Make up for the differences between a streamed reply and a whole one."""
    if stop_sequences is not None and not getattr(model, "supports_stop_parameter", True):
        message.content = remove_content_after_stop_sequences(message.content, stop_sequences)
    if not message.content and message.tool_calls and not keep_empty:
        message.content = None


def _stop_sequences(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return args[0] if args else kwargs.get("stop_sequences")
