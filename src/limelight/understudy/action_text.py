"""What was done and worked out, in sentences: sums, notes that were written and deleted, calls that failed.

Pure. The answer begins with these.
"""

import re

from limelight.understudy.sentences import cut
from limelight.understudy.situation import Scene
from limelight.understudy.tool_kinds import PATHS
from limelight.understudy.tool_results import Finding, Row
from limelight.understudy.topic import listed

SIGNS = {"add": "+", "plus": "+", "subtract": "-", "minus": "-", "multiply": "×", "times": "×", "divide": "/"}
PRINTED = re.compile(r"(?m)^([a-z][a-z ]*): (.+)$")
LARGEST = ("longest", "largest", "biggest", "highest", "tallest", "most", "greatest", "oldest", "deepest", "heaviest")
SMALLEST = ("shortest", "smallest", "lowest", "least", "fewest", "youngest", "lightest")


def label(one: Finding) -> str:
    """How a sentence speaks of a tool."""
    if one.kind == "code":
        return "The program"
    return f"`{one.name}`" if one.name != "tool" else "A tool"


def failure(one: Finding) -> str:
    tool = label(one)
    if re.search(r"\b(?:rejected|said no|denied|declined|not approved)\b", one.error, re.IGNORECASE):
        return f"{tool} was not done: {one.error}."
    return f"{tool} failed: {one.error}."


def deed(one: Finding, scene: Scene) -> str:
    """What a tool that changes something, waits or calculates has done."""
    if one.kind == "calculate":
        return worked_out(one, scene)
    if one.kind == "wait":
        return f"`{one.name}` took its time and says: {_said(one)}"
    path = next((str(one.given[name]) for name in PATHS if one.given.get(name)), "")
    verbs = {"write": "wrote", "create": "wrote", "save": "saved", "delete": "deleted", "remove": "deleted"}
    verb = next((past for word, past in verbs.items() if word in one.name.lower()), "")
    if verb and path:
        note = f"a note about {scene.topic} to " if verb != "deleted" and scene.topic else ""
        return f"I {verb} {note}`{path}`."
    return f"`{one.name}` says: {_said(one)}" if one.text else f"`{one.name}` is done."


def _said(one: Finding) -> str:
    return cut(" ".join(one.text.split()), 240).rstrip(".") + "."


def worked_out(one: Finding, scene: Scene) -> str:
    result = " ".join(one.text.split())
    if not re.fullmatch(r"[-+]?[\d.,]+(?:e[-+]?\d+)?", result):
        return f"`{one.name}` says: {_said(one)}"
    given = list(one.given.values())
    numbers = [value for value in given if isinstance(value, int | float) and not isinstance(value, bool)]
    sign = next((sign for word, sign in SIGNS.items() if word in one.name.lower()), "")
    if sign and len(numbers) > 1:
        return f"{f' {sign} '.join(map(str, numbers))} = {result}."
    written = next((value for value in given if isinstance(value, str) and re.search(r"\d", value)), "")
    if written and scene.sum_:
        return f"{shown_sum(written)} = {result}."
    return f"{_the_sum(scene)} is {result}."


def shown_sum(written: str) -> str:
    """A sum as people write it; asterisks would be Markdown."""
    return written.replace("**", "^").replace("*", "×")


def _the_sum(scene: Scene) -> str:
    return f"The sum of {listed([str(number) for number in scene.numbers])}" if scene.numbers else "The result"


def printed(one: Finding, scene: Scene) -> str:
    """What our own program said about numbers, as sentences."""
    said = dict(PRINTED.findall(one.text))
    if "sum" not in said and "result" not in said:
        return ""
    told: list[str] = []
    if "result" in said:
        told.append(f"{shown_sum(said['result'])}.")
    if "sum" in said:
        told.append(f"{_the_sum(scene)} is {said['sum']}.")
    if "mean" in said and len(scene.numbers) > 1:
        told.append(f"Their mean is {said['mean']}, the smallest is {said['smallest']}, the largest {said['largest']}.")
    return " ".join(told)


def ranked(table: tuple[Row, ...], scene: Scene) -> str:
    """Who comes first in a table, if that is the question."""
    asked = scene.question.lower()
    down = any(re.search(rf"\b{word}\b", asked) for word in LARGEST)
    if not down and not any(re.search(rf"\b{word}\b", asked) for word in SMALLEST):
        return ""
    header, *rows = table
    columns = [at for at in range(1, len(header)) if rows and all(_number(row[at]) is not None for row in rows)]
    if not columns or len(rows) < 2:
        return ""
    at = columns[0]
    order = sorted(rows, key=lambda row: _number(row[at]) or 0, reverse=down)
    first, *others = order[:3]
    after = listed([f"{row[0]} ({row[at]})" for row in others])
    return f"By {header[at].replace('_', ' ')}, {first[0]} comes first with {first[at]}, followed by {after}."


def _number(cell: str) -> float | None:
    plain = cell.replace(",", "").strip()
    return float(plain) if re.fullmatch(r"[-+]?\d+(?:\.\d+)?", plain) else None
