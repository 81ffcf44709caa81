"""Observes code in smolagents' Python interpreter: reports printed text at once, and can stop running code."""

# pyright: reportMissingTypeStubs=false

from collections.abc import Callable
from typing import Any

from smolagents.local_python_executor import PrintContainer


class ObservedState(dict[str, Any]):
    """The dict of variables of smolagents' LocalPythonExecutor, which reports printed text and each operation of code.

    smolagents stores the printed text and the operation count among the variables, and resets both for each execution.
    This dict then replaces them by objects that call the functions of `observe`. Functions that code defines refer to
    the dict, so it exists as long as the conversation.
    """

    _before_operation: Callable[[], None] | None = None
    _on_print: Callable[[str], None] | None = None

    def observe(self, before_operation: Callable[[], None], on_print: Callable[[str], None]) -> None:
        """Set the functions to call before every operation and with each printed text."""
        self._before_operation, self._on_print = before_operation, on_print

    def __setitem__(self, name: str, value: Any) -> None:
        if name == "_print_outputs" and type(value) is PrintContainer and self._on_print is not None:
            value = _ObservedPrints(self._on_print)
        elif name == "_operations_count" and type(value) is dict and self._before_operation is not None:
            value = _ObservedCount(self._before_operation)
        super().__setitem__(name, value)


class _ObservedPrints(PrintContainer):
    """smolagents' object for printed text, which also passes each addition to `on_print`."""

    def __init__(self, on_print: Callable[[str], None]) -> None:
        super().__init__()
        self.value: str = ""
        self._on_print = on_print

    def __iadd__(self, other: object) -> "_ObservedPrints":
        self.value += str(other)
        self._on_print(str(other))
        return self


class _ObservedCount(dict[str, int]):
    """smolagents' counter of operations, which calls `before_operation` before each operation of code."""

    def __init__(self, before_operation: Callable[[], None]) -> None:
        super().__init__(counter=0)
        self._before_operation = before_operation

    def __setitem__(self, name: str, value: int) -> None:
        self._before_operation()
        super().__setitem__(name, value)
