"""The line to a model's provider, which is hung up when a reply is not wanted any more.

To close smolagents' generator does not do that: openai's stream and the generator inside it hold each other, so that
the connection would stay open, and the tokens be paid for, until the garbage collector comes by. What a client answers
passes through the model's `retryer`, so that is where it is seen.
"""

import contextlib
from typing import Any, cast


class Line:
    """Stands in the place of a model's retryer for one reply, and remembers what it gave."""

    def __init__(self, retryer: Any) -> None:
        self._retryer = retryer
        self._answers: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_retryer":
            raise AttributeError(name)
        return getattr(self._retryer, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        answer = self._retryer(*args, **kwargs)
        self._answers.append(answer)
        return answer

    def hang_up(self) -> None:
        """Close what the provider still sends; harmless if it has come to its end."""
        for answer in self._answers:
            # LiteLLM wraps the provider's own stream, and has no way to close it.
            close = getattr(answer, "close", None) or getattr(getattr(answer, "completion_stream", None), "close", None)
            if callable(close):
                with contextlib.suppress(Exception):  # it is gone, and how is nobody's concern
                    close()


class Lines:
    """Makes models that are heard over a Line, and are the same in everything else."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._has_retryer = callable(getattr(model, "retryer", None)) and hasattr(model, "__dict__")
        if self._has_retryer:
            # A class of its own, whose slot stands before what the model has under that name: so the model's state can
            # be shared, and what a subclass counts while it streams is counted there.
            kind = cast("type[Any]", type(model))
            self._kind = type(kind.__name__, (kind,), {"__slots__": ("retryer",), "__module__": kind.__module__})

    def open(self) -> tuple[Any, Line]:
        """A model for one reply, and the line that it uses."""
        if not self._has_retryer:
            return self._model, Line(None)
        line = Line(self._model.retryer)
        model: Any = object.__new__(self._kind)
        model.__dict__ = self._model.__dict__
        model.retryer = line
        return model, line
