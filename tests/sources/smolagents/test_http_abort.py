"""The line to a provider: what came over it is closed, and the model is otherwise the one that was given."""

from collections.abc import Iterator
from typing import Any

from limelight.sources.smolagents.model import AbortableModel


class Answer:
    """What a client gives for a request."""

    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


class Wrapped:
    """As LiteLLM has it: the stream is inside, and cannot be closed from here."""

    def __init__(self, inner: Answer) -> None:
        self.completion_stream = inner


class Broken(Answer):
    """It cannot be closed any more."""

    def close(self) -> None:
        super().close()
        raise OSError("gone")


class Patient:
    """A retryer."""

    max_attempts = 3

    def __call__(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)


class Model:
    """What a model made for smolagents may look like."""

    def __init__(self, answer: Any) -> None:
        self.retryer = Patient()
        self.answer = answer
        self.asked = 0

    def generate_stream(self, text: str) -> Iterator[str]:
        self.asked += 1
        self.retryer(lambda: self.answer)
        yield text


def test_what_the_provider_sends_is_closed() -> None:
    inner, broken = Answer(), Broken()
    for answer in (Answer(), inner, broken):
        streaming, responses = AbortableModel(Model(Wrapped(answer) if answer is inner else answer)).start_reply()
        assert list(streaming.generate_stream("hello")) == ["hello"]
        assert answer.closed == 0
        responses.close()
        assert answer.closed == 1


def test_what_a_model_counts_is_counted_by_the_one_that_was_given() -> None:
    model = Model(Answer())
    abortable = AbortableModel(model)
    for _ in range(2):
        streaming, responses = abortable.start_reply()
        assert isinstance(streaming, Model) and type(streaming).__name__ == "Model"
        list(streaming.generate_stream("hello"))
        assert responses.max_attempts == 3
    assert model.asked == 2
    assert type(model.retryer) is Patient


def test_a_model_without_a_retryer_is_left_alone() -> None:
    model = object()
    streaming, responses = AbortableModel(model).start_reply()
    assert streaming is model
    responses.close()
