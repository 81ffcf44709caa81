"""The error tree: the drawing in the module's docstring is the tree of classes, and codes are unique."""

import inspect
from collections import Counter

from limelight import errors
from limelight.errors import LimelightError


def drawing(error: type[LimelightError] = LimelightError, depth: int = 0) -> list[str]:
    """The tree below an error: one line for each class, with its status and its code."""
    subclasses = [sub for sub in error.__subclasses__() if sub.__module__ == errors.__name__]
    line = f"{'    ' * (depth + 1)}{error.__name__} ({error.status}, {error.code})"
    return [line, *(below for sub in sorted(subclasses, key=_order) for below in drawing(sub, depth + 1))]


def _order(error: type[LimelightError]) -> int:
    """The position in the module."""
    return inspect.getsourcelines(error)[1]


def test_docstring_draws_the_tree_of_classes() -> None:
    drawn = [line for line in (errors.__doc__ or "").splitlines() if line.startswith("    ")]
    assert drawn == drawing(), "copy this into the docstring:\n" + "\n".join(drawing())


def test_each_code_belongs_to_one_error_or_to_a_base_and_its_subclass() -> None:
    codes = Counter(line.rpartition(", ")[2].rstrip(")") for line in drawing())
    shared = {code for code, count in codes.items() if count > 1}
    assert shared == {"bad_request", "internal", "setup"}
