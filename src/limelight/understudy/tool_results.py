"""What a tool returned, understood: pages and files with prose in them, tables, facts, names of files, or an error.

Pure, and made from the text alone, as tools of any framework may return anything: JSON, Python's way of writing it,
Markdown, CSV, listings. The answer is put together of findings.
"""

import ast
import csv
import json
import re
from typing import Any, cast

import msgspec

from limelight.understudy.conversation import Got, Tool
from limelight.understudy.sentences import MOST_LETTERS, cut
from limelight.understudy.situation import FILE, URL, Scene
from limelight.understudy.tool_kinds import PATHS, Kind, kind_of

TITLES = ("title", "name", "heading", "headline", "label")
LINKS = ("url", "link", "href", "uri", "source", "path", "file")
BODIES = ("snippet", "text", "content", "body", "description", "summary", "abstract", "extract")
LINK = re.compile(r"\[([^\]\n]+)\]\((https?://[^)\s]+)\)")
FAILED = re.compile(
    r"\A\W*(?:Call id: .*, Error:|\d+ validation errors?\b|"
    r"\w*Error\b|\w*Exception\b|error executing|traceback|failed\b|failure\b|.{0,80}\bdue to:\s*\w*Error)",
    re.IGNORECASE,
)
SAID_NO = re.compile(r"\b(?:rejected|said no|denied|declined|not approved|cancelled by)\b", re.IGNORECASE)
ROWS, FACTS = 8, 8
Row = tuple[str, ...]


class Passage(msgspec.Struct, frozen=True):
    """A text from somewhere: a page, a file, a hit of a search, a helper's report."""

    text: str
    title: str = ""
    place: str = ""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What one call brought. `text` is all of it, as far as it is no more than a line or two."""

    name: str
    kind: Kind
    given: dict[str, Any] = {}
    code: str = ""
    text: str = ""
    error: str = ""
    passages: tuple[Passage, ...] = ()
    table: tuple[Row, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    names: tuple[str, ...] = ()


def findings(scene: Scene) -> list[Finding]:
    """Those of all results since the user's message, without our own plans and answers."""
    kinds: dict[str, Kind] = {tool.name: kind_of(tool) for tool in scene.tools}
    found: list[Finding] = []
    for result in scene.request.results:
        kind = kinds[result.name] if result.name in kinds else kind_of(Tool(result.name))
        if kind not in ("plan", "final"):
            found.append(finding(result, kind))
    return found


def finding(result: Got, kind: Kind) -> Finding:
    text = _unwrapped(result.text[:MOST_LETTERS])
    given = _object(result.given)
    if result.name == "tool" and re.search(r"<code>|```", result.given):
        kind = "code"  # written between marks, and called by no name
    code = result.given if kind == "code" and not given else str(given.get("code", ""))
    one = Finding(name=result.name, kind=kind, given=given, code=code, text=text)
    if error := error_in(text, lost=result.lost):
        return msgspec.structs.replace(one, error=error, text="")
    if kind in ("write", "wait", "calculate"):
        return one
    place = next((str(given[name]) for name in ("url", *PATHS) if given.get(name)), "") if kind == "read" else ""
    if kind == "code" and len(set(URL.findall(code))) == 1:
        place = URL.findall(code)[0]
    if kind == "delegate":
        return msgspec.structs.replace(one, passages=_report(text))
    data = data_in(text)
    if data is not None:
        return _of_data(one, data)
    if names := _names(text):
        return msgspec.structs.replace(one, names=names)
    if table := csv_table(text):
        return msgspec.structs.replace(one, table=table, passages=(Passage("", place, place),))
    return msgspec.structs.replace(one, passages=_passages(text, place))


def _unwrapped(text: str) -> str:
    """Without what frameworks put around a result, and without numbers of lines."""
    text = re.sub(r"\A\s*Execution logs:\s*\n?", "", text)
    printed, _, last = text.partition("Last output from code snippet:")
    text = printed if printed.strip() or last.strip() == "None" else last
    lines = [line for line in text.splitlines() if not re.fullmatch(r"\s*@@ .* @@\s*", line)]
    text = "\n".join(lines)
    numbered = re.compile(r"^\s*\d+(?:\t|→| {2})")
    if lines and all(numbered.match(line) for line in lines if line.strip()):
        text = "\n".join(numbered.sub("", line) for line in lines)
    return text.strip()


def error_in(text: str, *, lost: bool = False) -> str:
    """What went wrong, in a line; empty if nothing did."""
    data = data_in(text)
    if isinstance(data, dict):
        told = cast("dict[str, Any]", data)
        return _line(str(told["error"])) if told.get("error") and len(told) <= 3 else ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    printed_before = bool(lines) and re.match(r"(?:\w+)?Error: ", lines[-1])
    if printed_before and not FAILED.match(text):
        return _line(lines[-1])
    if not (lost or FAILED.match(text) or (len(text) < 300 and SAID_NO.search(text))):
        return ""
    causes = [line.rpartition("due to:")[2].strip() for line in lines if "due to:" in line]
    if unfit := re.findall(r"(?m)^(\w+)\n\s+(.+?) \[type=", text):
        return f"the arguments do not fit ({', '.join(f'{name}: {why.lower()}' for name, why in unfit[:4])})"
    if "Traceback" in text:
        told = lines[-1]
    elif causes and causes[0]:
        told = causes[0]
    else:
        told = next((line for line in lines if not re.fullmatch(r"(?:Call id: .*, )?Error:?", line)), "it failed")
    return _line(told)


def _line(text: str) -> str:
    told = re.sub(r"^(?:Error|error):\s*", "", " ".join(text.split()))
    return cut(told, 240).rstrip(".") or "it failed"


def data_in(text: str) -> Any:
    """What a text says as JSON, or as Python writes it; None if it is neither, or a bare word."""
    if not text.startswith(("[", "{")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _object(text: str) -> dict[str, Any]:
    data = data_in(text)
    return cast("dict[str, Any]", data) if isinstance(data, dict) else {}


def _of_data(one: Finding, data: Any) -> Finding:
    changed = msgspec.structs.replace
    if isinstance(data, dict):
        told = cast("dict[str, Any]", data)
        lists = [cast("list[Any]", value) for value in told.values() if isinstance(value, list)]
        if inner := next((items for items in lists if items and isinstance(items[0], dict)), None):
            return _of_data(one, inner)
        passage = _passage(told)
        return changed(one, passages=(passage,)) if passage else changed(one, facts=_facts(told))
    items = cast("list[Any]", data) if isinstance(data, list) else [data]
    objects = [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]
    if objects:
        passages = [passage for item in objects if (passage := _passage(item)) is not None]
        return changed(one, passages=tuple(passages)) if passages else changed(one, table=_table(objects))
    texts = [str(item) for item in items if item is not None]
    if all(FILE.fullmatch(text.strip()) or text.endswith("/") for text in texts):
        return changed(one, names=tuple(texts))
    return changed(one, facts=tuple(("", cut(text, 160)) for text in texts[:FACTS]))


def _passage(item: dict[str, Any]) -> Passage | None:
    """A hit of a search: something with a text, and a title or an address."""
    low = {key.lower(): value for key, value in item.items()}
    title, place, text = (
        next((low[name] for name in names if isinstance(low.get(name), str) and low[name]), "")
        for names in (TITLES, LINKS, BODIES)
    )
    return Passage(text, title or place, place) if text and (title or place) else None


def _facts(item: dict[str, Any], before: str = "") -> tuple[tuple[str, str], ...]:
    told: list[tuple[str, str]] = []
    for key, value in item.items():
        name = f"{before} {key}".strip().replace("_", " ")
        if isinstance(value, dict):
            told += _facts(cast("dict[str, Any]", value), name) if not before else ()
        elif value is not None and value != "":
            told.append((name, _cell(value)))
    return tuple(told[:FACTS])


def _table(objects: list[dict[str, Any]]) -> tuple[Row, ...]:
    columns = list(objects[0])[:5]
    return (tuple(columns), *(tuple(_cell(item.get(name, "")) for name in columns) for item in objects))


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        items = [item for item in cast("list[Any]", value) if not isinstance(item, dict | list)]
        return cut(", ".join(map(str, items[:5])) + (", …" if len(items) > 5 else ""), 120)
    return cut(" ".join(str(value).split()), 120) if not isinstance(value, dict) else "…"


def csv_table(text: str) -> tuple[Row, ...]:
    """A table of comma-separated values: a header and rows, all of one length."""
    lines = text.splitlines()
    if len(lines) < 2 or "," not in lines[0] or re.search(r"[.!?]\s|[.!?]$", lines[0]):
        return ()
    try:
        rows = [tuple(cell.strip() for cell in row) for row in csv.reader(lines[:200]) if row]
    except csv.Error:
        return ()
    widths = {len(row) for row in rows}
    return tuple(rows) if len(widths) == 1 and min(widths) > 1 and all(len(c) < 60 for row in rows for c in row) else ()


def markdown_table(text: str) -> tuple[Row, ...]:
    """The first table of a Markdown text."""
    found = re.search(r"(?m)^\|.+\|\s*\n\|[\s:|-]+\|\s*\n(?:\|.*\|\s*(?:\n|\Z))+", text)
    if not found:
        return ()
    lines = [line for at, line in enumerate(found[0].strip().splitlines()) if at != 1]
    rows = [tuple(cell.strip() for cell in line.strip().strip("|").split("|")) for line in lines]
    return tuple(row for row in rows if len(row) == len(rows[0]))


def _names(text: str) -> tuple[str, ...]:
    """Names of files, one a line, as listings have them."""
    lines = [re.sub(r"^\s*[-*]\s+", "", line).strip() for line in text.splitlines() if line.strip()]
    return tuple(lines) if lines and all(FILE.fullmatch(line) or re.fullmatch(r"\S+/", line) for line in lines) else ()


def _passages(text: str, place: str) -> tuple[Passage, ...]:
    hits = _hits(text)
    if hits:
        return hits
    heading = re.search(r"(?m)^#+\s+(.+)$", text)
    title = heading[1].strip() if heading and text.lstrip().startswith("#") else ""
    return (Passage(text, title or place, place),) if text else ()


def _hits(text: str) -> tuple[Passage, ...]:
    """What a search gave as text: linked titles, blocks with an address in a line of its own, or lines of files."""
    links = list(LINK.finditer(text))
    if len(links) > 1 and text.count("\n") < 12 * len(links):
        ends = [*(link.start() for link in links[1:]), len(text)]
        return tuple(
            Passage(text[link.end() : end].strip(" \n-*#:|"), link[1], link[2])
            for link, end in zip(links, ends, strict=True)
        )
    found: list[Passage] = []
    for block in re.split(r"\n\s*\n", text):
        lines = [line.strip() for line in block.splitlines() if line.strip()]
        places = [line for line in lines if URL.fullmatch(line)]
        rest = [line for line in lines if line not in places]
        if len(places) == 1 and rest:
            found.append(Passage(" ".join(rest[1:]), rest[0], places[0]))
    if found:
        return tuple(found)
    lines = re.findall(r"(?m)^(/?[\w./-]+\.\w+):\d+:\s*(.+)$", text)
    by_file = {name: " ".join(line for other, line in lines if other == name) for name, _ in lines}
    return tuple(Passage(told, name, name) for name, told in by_file.items())


def _report(text: str) -> tuple[Passage, ...]:
    """A helper's report: its words, and the pages that it names as its sources."""
    body = re.split(r"(?m)^(?:#+\s*|\*\*)?Sources?\b", text)[0]
    pages = [Passage("", link[1], link[2]) for link in LINK.finditer(text)]
    files = re.findall(r"`([^`\n]+)`", text[len(body) :])
    linked = " ".join(page.place for page in pages)
    bare = [Passage("", url, url) for url in dict.fromkeys(URL.findall(text)) if url.rstrip(".,") not in linked]
    return (Passage(LINK.sub(r"\1", body).strip()), *pages, *bare, *(Passage("", name, name) for name in files))
