"""`calculate` evaluates arithmetic, and nothing else."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.builtin.basic_tools import calculate


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("12 * 7 + 3", "87"),
        ("(2 + 3) * 4 ** 2", "80"),
        ("7 / 2", "3.5"),
        ("8 / 2", "4"),
        ("-7 // 2 % 3", "2"),
        ("2^10 × 2", "2048"),
        ("sqrt(2) * max(1, 2) - round(pi)", str(2**0.5 * 2 - 3)),
        ("2 ** 0.5", str(2**0.5)),
        ("1e300 * 10", "1e+301"),
    ],
)
def test_calculate_evaluates_arithmetic(expression: str, value: str) -> None:
    assert calculate(expression) == value


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("__import__('os')", "not a valid expression"),
        ("(1).__class__", "not a valid expression"),
        ("open('x')", "not a valid expression"),
        ("'a' * 9", "not a valid expression"),
        ("True + 1", "not a valid expression"),
        ("[1][0]", "not a valid expression"),
        ("max(*[1])", "not a valid expression"),
        ("1 +", "not a valid expression"),
        ("", "not a valid expression"),
        ("9 ** 9 ** 9", "too large"),
        ("10 ** 100000", "too large"),
        ("1e308 ** 2", "too large"),
        ("(-1) ** 0.5", "not a real number"),
        ("1" * 600, "too long"),
    ],
)
def test_calculate_refuses_other_expressions(expression: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        calculate(expression)


def test_calculate_raises_for_a_division_by_zero() -> None:
    with pytest.raises(ZeroDivisionError):
        calculate("1 / 0")


@given(st.text(alphabet="0123456789+-*/%(). eabs,max", max_size=40))
def test_calculate_ends_with_a_value_or_an_error_for_any_text(text: str) -> None:
    with suppress(ValueError, ArithmeticError, TypeError):
        assert calculate(text)
