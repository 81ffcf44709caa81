"""Streams a model's replies to the Observer, and closes the connection to the provider when the run is stopped.

smolagents' own streaming redraws the terminal for every token, so the clone of an agent does not use it. The model gets
the same messages, and the agent gets the same reply, as without streaming; only characters that UTF-8 cannot encode are
replaced.

Closing smolagents' generator does not close the connection to the provider: openai's stream and its inner generator
refer to each other, so the provider would generate paid tokens until the garbage collector runs. Responses of a client
pass through the model's `retryer`, where they are recorded so that they can be closed.
"""

# pyright: reportMissingTypeStubs=false

import contextlib
import copy
from collections.abc import Iterator
from typing import Any, cast

from smolagents.models import agglomerate_stream_deltas, remove_content_after_stop_sequences

from limelight.json_values import fields_of, items_of
from limelight.sources.smolagents.reports import ModelDelta, ModelReplied, Observer


def observed_model(model: Any, observer: Observer, agent_id: str, keep_empty: bool) -> Any:
    """Return a copy of the model whose `generate` streams to the observer, sharing connections and rate limits.

    `keep_empty`: whether the content of a reply with only tool calls is "", as for agents that stream, instead of None.
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
            _postprocess(message, model, args[0] if args else kwargs.get("stop_sequences"), keep_empty)
        else:
            message = model.generate(messages, *args, **kwargs)
        observer.emit(ModelReplied(agent_id, message, name, streams))
        return message

    observed.generate = generate
    return observed


def can_stream(model: Any) -> bool:
    """Whether `generate` can be replaced by `generate_stream`; not if a subclass has overridden only `generate`."""
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


def _postprocess(message: Any, model: Any, stop_sequences: Any, keep_empty: bool) -> None:
    """Cut a streamed reply at a stop sequence and clear its empty content, as the model does without streaming."""
    if stop_sequences is not None and not getattr(model, "supports_stop_parameter", True):
        message.content = remove_content_after_stop_sequences(message.content, stop_sequences)
    if not message.content and message.tool_calls and not keep_empty:
        message.content = None


# Connections


class ResponseRecorder:
    """Replaces a model's `retryer` during one reply, to record the HTTP responses so that they can be closed."""

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
        """Close the recorded responses. This has no effect on a complete response."""
        for response in self._responses:
            # LiteLLM wraps the provider's own stream, and has no method to close it.
            wrapped = getattr(response, "completion_stream", None)
            close = getattr(response, "close", None) or getattr(wrapped, "close", None)
            if callable(close):
                with contextlib.suppress(Exception):  # the connection may already be closed
                    close()


class AbortableModel:
    """Makes copies of a model whose HTTP responses can be closed. The copies share the model's state."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._has_retryer = callable(getattr(model, "retryer", None)) and hasattr(model, "__dict__")
        if self._has_retryer:
            # The slot of the subclass hides the model's `retryer`, so that copies can share the model's `__dict__`:
            # counters that a copy changes while it streams change in the original, too.
            kind = cast("type[Any]", type(model))
            self._kind = type(kind.__name__, (kind,), {"__slots__": ("retryer",), "__module__": kind.__module__})

    def start_reply(self) -> tuple[Any, ResponseRecorder]:
        """Return a copy of the model for one reply, and the recorder of its HTTP responses."""
        if not self._has_retryer:
            return self._model, ResponseRecorder(None)
        recorder = ResponseRecorder(self._model.retryer)
        model: Any = object.__new__(self._kind)
        model.__dict__ = self._model.__dict__
        model.retryer = recorder
        return model, recorder


# Text that can be encoded


def encodable(value: Any) -> Any:
    """Replace characters of a text that UTF-8 cannot encode. Return a value that is not a text unchanged."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def encodable_messages(messages: Any) -> Any:
    """Replace characters that UTF-8 cannot encode in the messages that a model gets.

    Output of code and errors of tools are among the messages and stay in the agent's memory: one invalid character
    would make every later request fail.
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
