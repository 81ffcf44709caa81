"""Streams the replies of a model to the Observer, and closes the connection when a reply is not wanted any more.

smolagents' own streaming redraws the terminal for every token, so the clone of an agent does not use it. The messages
that the model gets and the reply that the agent gets are those of an agent that does not stream; only halves of
characters, which cannot be sent, are replaced.

Closing smolagents' generator does not close the connection to the provider: openai's stream and the generator inside of
it refer to each other, so that tokens would be paid for until the garbage collector runs. Responses of a client pass
through the model's `retryer`, where they are recorded and can be closed.
"""

# pyright: reportMissingTypeStubs=false

import contextlib
import copy
from collections.abc import Iterator
from typing import Any, cast

from smolagents.models import agglomerate_stream_deltas, remove_content_after_stop_sequences

from limelight.sources.smolagents.signals import ModelDelta, ModelReplied, Observer
from limelight.sources.values import fields_of, items_of


def observed_model(model: Any, observer: Observer, agent_id: str, keep_empty: bool) -> Any:
    """A copy of the model whose `generate` streams to the observer. It shares connections and limits with the original.

    `keep_empty`: whether a reply of nothing but calls has the content "", as with agents that stream, or None.
    """
    observed = copy.copy(model)
    name = str(getattr(model, "model_id", None) or "")
    streams = can_stream(model)
    abortable = AbortableModel(model)

    def generate(messages: Any, *args: Any, **kwargs: Any) -> Any:
        observer.check_cancelled()
        messages = encodable_messages(messages)
        if streams:
            streaming, responses = abortable.start_reply()
            stream = streaming.generate_stream(messages, *args, **kwargs)
            message = _observe(stream, responses, observer, agent_id)
            _complete(message, model, args[0] if args else kwargs.get("stop_sequences"), keep_empty)
        else:
            message = model.generate(messages, *args, **kwargs)
        observer.emit(ModelReplied(agent_id, message, name, streams))
        return message

    observed.generate = generate
    return observed


def can_stream(model: Any) -> bool:
    """Whether `generate_stream` can replace `generate`: not if a subclass has overridden only `generate`."""
    if not callable(getattr(model, "generate_stream", None)) or "generate" in vars(model):
        return False
    bases = type(model).__mro__
    generate = next((at for at, base in enumerate(bases) if "generate" in vars(base)), len(bases))
    generate_stream = next((at for at, base in enumerate(bases) if "generate_stream" in vars(base)), 0)
    return generate_stream <= generate


def _observe(stream: Iterator[Any], responses: "ResponseRecorder", observer: Observer, agent_id: str) -> Any:
    deltas: list[Any] = []
    emit = observer.emit
    try:
        for delta in stream:
            deltas.append(delta)
            emit(ModelDelta(agent_id, delta))
    finally:
        close = getattr(stream, "close", None)
        if close is not None:
            close()
        responses.close()  # ends the request, if the run was stopped
    return agglomerate_stream_deltas(deltas)


def _complete(message: Any, model: Any, stop_sequences: Any, keep_empty: bool) -> None:
    """Remove the differences between a streamed reply and one that was not streamed."""
    if stop_sequences is not None and not getattr(model, "supports_stop_parameter", True):
        message.content = remove_content_after_stop_sequences(message.content, stop_sequences)
    if not message.content and message.tool_calls and not keep_empty:
        message.content = None


# Connections


class ResponseRecorder:
    """Replaces a model's retryer for one reply, and records the responses that it returns."""

    def __init__(self, retryer: Any) -> None:
        self._retryer = retryer
        self._responses: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_retryer":
            raise AttributeError(name)
        return getattr(self._retryer, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        response = self._retryer(*args, **kwargs)
        self._responses.append(response)
        return response

    def close(self) -> None:
        """Close the responses. This has no effect on one that is complete."""
        for response in self._responses:
            # LiteLLM wraps the provider's own stream, and has no method to close it.
            wrapped = getattr(response, "completion_stream", None)
            close = getattr(response, "close", None) or getattr(wrapped, "close", None)
            if callable(close):
                with contextlib.suppress(Exception):  # the connection may be gone
                    close()


class AbortableModel:
    """Makes copies of a model whose responses can be closed; they share its state."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._has_retryer = callable(getattr(model, "retryer", None)) and hasattr(model, "__dict__")
        if self._has_retryer:
            # The slot of a subclass hides the model's attribute, so that the state can be shared: what a model counts
            # while it streams is counted in the original.
            kind = cast("type[Any]", type(model))
            self._kind = type(kind.__name__, (kind,), {"__slots__": ("retryer",), "__module__": kind.__module__})

    def start_reply(self) -> tuple[Any, ResponseRecorder]:
        """A copy of the model for one reply, and its responses."""
        if not self._has_retryer:
            return self._model, ResponseRecorder(None)
        recorder = ResponseRecorder(self._model.retryer)
        model: Any = object.__new__(self._kind)
        model.__dict__ = self._model.__dict__
        model.retryer = recorder
        return model, recorder


# Text that can be encoded


def encodable(value: Any) -> Any:
    """Replace characters of a text that UTF-8 cannot encode; any other value is returned unchanged."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def encodable_messages(messages: Any) -> Any:
    """The messages for a model with texts that can be encoded.

    Output of code and errors of tools are among them and stay in the agent's memory: one broken character would make
    every later request fail.
    """
    return [_encodable_message(message) for message in items_of(messages)] or messages


def _encodable_message(message: Any) -> Any:
    fields = fields_of(message)
    content: Any = fields.get("content") if fields else getattr(message, "content", None)
    parts = items_of(content)
    cleaned = [_encodable_part(part) for part in parts] if parts else encodable(content)
    if cleaned == content:
        return message
    if fields:
        return {**fields, "content": cleaned}
    copied = copy.copy(message)
    copied.content = cleaned
    return copied


def _encodable_part(part: Any) -> Any:
    text = fields_of(part).get("text")
    return part if (cleaned := encodable(text)) == text else {**part, "text": cleaned}
