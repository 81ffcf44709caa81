"""The tools `calculate` (arithmetic with bounded results) and `wait`, which need neither files nor a session."""

import ast
import asyncio
import math
import operator
from collections.abc import Callable
from typing import Any

BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: operator.mod,
}
UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}
FUNCTIONS: dict[str, Callable[..., Any]] = {"abs": abs, "max": max, "min": min, "round": round, "sqrt": math.sqrt}
CONSTANTS = {"pi": math.pi, "e": math.e}
MAX_CHARACTERS = 500
MAX_BITS = 4096
"""Maximum size of integers in `calculate`, so that a huge power does not block the process."""
MAX_WAIT_SECONDS = 60


def calculate(expression: str) -> str:
    """Calculate an arithmetic expression such as (2 + 3) * 4 ** 2, with sqrt, abs, min, max and round if needed.

    Args:
        expression: The expression.
    """
    if len(expression) > MAX_CHARACTERS:
        raise ValueError("the expression is too long")
    try:
        value = _value(ast.parse(expression.strip().replace("^", "**").replace("×", "*"), mode="eval").body)
    except SyntaxError as error:
        raise ValueError(f"{expression!r} is not a valid expression") from error
    except (OverflowError, RecursionError, MemoryError) as error:
        raise ValueError(f"{expression!r} is too large") from error
    return str(int(value)) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else str(value)


def _value(node: ast.AST) -> int | float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.Name(id=name) if name in CONSTANTS:
            return CONSTANTS[name]
        case ast.UnaryOp(op=op, operand=operand) if type(op) in UNARY:
            return UNARY[type(op)](_value(operand))
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_value(left), _value(right))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in BINARY:
            return _bounded(BINARY[type(op)](_value(left), _value(right)))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            return FUNCTIONS[name](*map(_value, args))
        case _:
            raise ValueError(f"{ast.unparse(node)!r} is not a valid expression")


def _power(base: float, exponent: float) -> int | float:
    if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * abs(exponent) > MAX_BITS:
        raise OverflowError
    value = base**exponent
    if isinstance(value, complex):
        raise ValueError(f"{base} to the power of {exponent} is not a real number")
    return value


def _bounded(value: Any) -> Any:
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise OverflowError
    return value


async def wait(seconds: float) -> str:
    """Wait for a number of seconds, at most 60. Use this only if the user has requested it.

    Args:
        seconds: How many seconds to wait.
    """
    waited = min(max(seconds, 0), MAX_WAIT_SECONDS)
    await asyncio.sleep(waited)
    return f"waited for {waited:g} seconds"
