"""The variables of an agent's code, watched: a dict that hears what is printed, and between two operations lets a
stopped run end.

smolagents keeps both the printed text and the count of operations among the variables, and sets them anew for each
piece of code; that is where they are replaced. Functions that code defines hold on to this dict, so it stays as long
as the conversation.
"""

# pyright: reportMissingTypeStubs=false

from collections.abc import Callable
from typing import Any

from smolagents.local_python_executor import PrintContainer


class WatchedState(dict[str, Any]):
    """The state of a LocalPythonExecutor."""

    _check: Callable[[], None] | None = None
    _hear: Callable[[str], None] | None = None

    def watch(self, check: Callable[[], None], hear: Callable[[str], None]) -> None:
        """From now on, `hear` what is printed and `check` before every operation."""
        self._check, self._hear = check, hear

    def __setitem__(self, name: str, value: Any) -> None:
        if name == "_print_outputs" and type(value) is PrintContainer and self._hear is not None:
            value = HeardPrints(self._hear)
        elif name == "_operations_count" and type(value) is dict and self._check is not None:
            value = CheckedCount(self._check)
        super().__setitem__(name, value)


class HeardPrints(PrintContainer):
    """What code has printed so far; told as it grows."""

    def __init__(self, hear: Callable[[str], None]) -> None:
        super().__init__()
        self.value: str = ""
        self._hear = hear

    def __iadd__(self, other: object) -> "HeardPrints":
        self.value += str(other)
        self._hear(str(other))
        return self


class CheckedCount(dict[str, int]):
    """The count of operations, which goes up with each."""

    def __init__(self, check: Callable[[], None]) -> None:
        super().__init__(counter=0)
        self._check = check

    def __setitem__(self, name: str, value: int) -> None:
        self._check()
        super().__setitem__(name, value)
