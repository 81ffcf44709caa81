"""smolagents: responses of a provider are closed, and copies of a model share its state."""

from collections.abc import Iterator
from typing import Any

from limelight.sources.smolagents.model_wrapper import AbortableModel


class Answer:
    """A response of a client."""

    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


class Wrapped:
    """A stream as LiteLLM wraps it: without a method that closes the inner stream."""

    def __init__(self, inner: Answer) -> None:
        self.completion_stream = inner


class Broken(Answer):
    """A response that raises when it is closed."""

    def close(self) -> None:
        super().close()
        raise OSError("gone")


class Patient:
    """A retryer."""

    max_attempts = 3

    def __call__(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)


class Model:
    """A model for smolagents."""

    def __init__(self, answer: Any) -> None:
        self.retryer = Patient()
        self.answer = answer
        self.asked = 0

    def generate_stream(self, text: str) -> Iterator[str]:
        self.asked += 1
        self.retryer(lambda: self.answer)
        yield text


def test_close_closes_the_responses_of_the_provider() -> None:
    inner, broken = Answer(), Broken()
    for answer in (Answer(), inner, broken):
        streaming, responses = AbortableModel(Model(Wrapped(answer) if answer is inner else answer)).start_reply()
        assert list(streaming.generate_stream("hello")) == ["hello"]
        assert answer.closed == 0
        responses.close()
        assert answer.closed == 1


def test_copies_of_a_model_share_its_state() -> None:
    model = Model(Answer())
    abortable = AbortableModel(model)
    for _ in range(2):
        streaming, responses = abortable.start_reply()
        assert isinstance(streaming, Model) and type(streaming).__name__ == "Model"
        list(streaming.generate_stream("hello"))
        assert responses.max_attempts == 3
    assert model.asked == 2
    assert type(model.retryer) is Patient


def test_model_without_a_retryer_is_not_copied() -> None:
    model = object()
    streaming, responses = AbortableModel(model).start_reply()
    assert streaming is model
    responses.close()
