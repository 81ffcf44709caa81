"""Parses tool results into text passages with their source, Markdown for data, or an error.

Pure. Tools return JSON, Python literals, Markdown, CSV or file listings, which are recognised by their text alone.
"""

import ast
import csv
import json
import re
from collections.abc import Sequence
from typing import Any, cast

import msgspec

from limelight.understudy.chat_requests import Tool, ToolResult
from limelight.understudy.excerpts import MAX_CHARACTERS, truncate
from limelight.understudy.tool_kinds import PATH_FIELDS, Kind, kind_of
from limelight.understudy.turn_context import FILE, URL, TurnContext

TITLE_KEYS = ("title", "name", "heading", "headline", "label")
LOCATION_KEYS = ("url", "link", "href", "uri", "source", "path", "file")
TEXT_KEYS = ("snippet", "text", "content", "body", "description", "summary", "abstract", "extract")
LINK = re.compile(r"\[([^\]\n]+)\]\((https?://[^)\s]+)\)")
FAILED = re.compile(
    r"\A\W*(?:Call id: .*, Error:|\d+ validation errors?\b|"
    r"\w*Error\b|\w*Exception\b|error executing|traceback|failed\b|failure\b|.{0,80}\bdue to:\s*\w*Error)",
    re.IGNORECASE,
)
REJECTED = re.compile(r"\b(?:rejected|said no|denied|declined|not approved|cancelled by)\b", re.IGNORECASE)
MAX_COLUMNS, MAX_ROWS, MAX_LINES = 5, 8, 8


class Passage(msgspec.Struct, frozen=True):
    """The text of a page, file, search hit or report, with its title and its location (a URL or a path)."""

    text: str
    title: str = ""
    location: str = ""


class ParsedResult(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed tool result: text passages, or Markdown to quote, or an error in one line."""

    name: str
    kind: Kind
    arguments: dict[str, Any] = {}
    passages: tuple[Passage, ...] = ()
    markdown: str = ""
    error: str = ""


def parsed_results(context: TurnContext) -> list[ParsedResult]:
    """Return the parsed tool results since the last user message, except those of plan and final-answer tools."""
    kinds: dict[str, Kind] = {tool.name: kind_of(tool) for tool in context.tools}
    parsed = [
        parse_result(result, kinds.get(result.name) or kind_of(Tool(result.name))) for result in context.request.results
    ]
    return [result for result in parsed if result.kind not in ("plan", "final")]


def parse_result(result: ToolResult, kind: Kind) -> ParsedResult:
    text = _unwrap(result.text[:MAX_CHARACTERS])
    if result.name == "tool" and re.search(r"<code>|```", result.arguments):
        kind = "code"  # a code agent's block has no tool name
    parsed = ParsedResult(name=result.name, kind=kind, arguments=_parse_object(result.arguments))
    if error := _error_in(text, failed=result.call_missing):
        return msgspec.structs.replace(parsed, error=error)
    if kind == "delegate":
        return msgspec.structs.replace(parsed, passages=_report_passages(text))
    location = _location(parsed, result.arguments)
    passages = () if kind in ("write", "wait", "calculate") else _passages(text, location)
    if passages and (location or kind in ("read", "search", "list") or passages[0].location):
        return msgspec.structs.replace(parsed, passages=passages)
    source = (Passage("", location, location),) if location else ()
    return msgspec.structs.replace(parsed, markdown=_markdown(text), passages=source)


def _unwrap(text: str) -> str:
    """Return a result's text without the wrapping and the line numbers that frameworks add."""
    text = re.sub(r"\A\s*Execution logs:\s*\n?", "", text)
    printed, _, last_value = text.partition("Last output from code snippet:")
    text = printed if printed.strip() or last_value.strip() == "None" else last_value
    lines = [line for line in text.splitlines() if not re.fullmatch(r"\s*@@ .* @@\s*", line)]
    line_number = re.compile(r"^\s*\d+(?:\t|→| {2})")
    if all(line_number.match(line) for line in lines if line.strip()):
        lines = [line_number.sub("", line) for line in lines]
    return "\n".join(lines).strip()


def _location(parsed: ParsedResult, code: str) -> str:
    """Return the URL or path that a call has read, or the only URL in its code; "" if it is unknown."""
    if parsed.kind == "read":
        return next((str(parsed.arguments[name]) for name in ("url", *PATH_FIELDS) if parsed.arguments.get(name)), "")
    urls = set(URL.findall(code)) if parsed.kind == "code" else set[str]()
    return urls.pop() if len(urls) == 1 else ""


def _error_in(text: str, *, failed: bool) -> str:
    """Return the error that a result reports, as one line; "" if it reports none."""
    if (report := _parse_object(text)) and report.get("error") and len(report) <= 3:
        return _one_line(str(report["error"]))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not (failed or FAILED.match(text) or (len(text) < 300 and REJECTED.search(text))):
        return _one_line(lines[-1]) if lines and re.match(r"\w*Error: ", lines[-1]) else ""
    if invalid := re.findall(r"(?m)^(\w+)\n\s+(.+?) \[type=", text):  # an error of pydantic
        return f"the arguments do not fit ({', '.join(f'{name}: {reason.lower()}' for name, reason in invalid[:4])})"
    if "Traceback" in text:
        return _one_line(lines[-1])
    causes = [line.rpartition("due to:")[2].strip() for line in lines if "due to:" in line]
    reasons = [line for line in lines if not re.fullmatch(r"(?:Call id: .*, )?Error:?", line)]
    return _one_line(next(filter(None, (*causes, *reasons)), ""))


def _one_line(text: str) -> str:
    line = re.sub(r"^(?:Error|error):\s*", "", " ".join(text.split()))
    return truncate(line, 240).rstrip(".") or "no reason given"


def _parse_data(text: str) -> Any:
    """Parse a list or an object, as JSON or Python literal, or one such value per line; None if the text is neither."""
    if not text.startswith(("[", "{")):
        return None
    for parse in (json.loads, ast.literal_eval):
        try:
            return parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    lines = text.splitlines()
    values = [_parse_data(line) for line in lines] if len(lines) > 1 else [None]
    return None if None in values else values


def _parse_object(text: str) -> dict[str, Any]:
    data = _parse_data(text)
    return cast("dict[str, Any]", data) if isinstance(data, dict) else {}


def _objects(data: Any) -> list[dict[str, Any]]:
    """Return the objects in a list, or in a list inside an object, such as `{"results": [...]}`."""
    if isinstance(data, dict):
        lists = [_objects(value) for value in cast("dict[str, Any]", data).values() if isinstance(value, list)]
        return next(filter(None, lists), [cast("dict[str, Any]", data)])
    items = cast("list[Any]", data) if isinstance(data, list) else []
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]


def _passages(text: str, location: str) -> tuple[Passage, ...]:
    data = _parse_data(text)
    if data is not None:
        return tuple(hit for item in _objects(data) if (hit := _search_hit(item)) is not None)
    if _csv_rows(text) or _is_listing(text):
        return ()
    links = list(LINK.finditer(text))
    if len(links) > 1 and text.count("\n") < 12 * len(links):  # search hits as Markdown links with a text each
        ends = [*(link.start() for link in links[1:]), len(text)]
        return tuple(
            Passage(text[link.end() : end].strip(" \n-*#:|"), link[1], link[2])
            for link, end in zip(links, ends, strict=True)
        )
    if lines := re.findall(r"(?m)^(/?[\w./-]+\.\w+):\d+:\s*(.+)$", text):  # output of grep
        names = dict.fromkeys(name for name, _ in lines)
        return tuple(Passage(" ".join(line for other, line in lines if other == name), name, name) for name in names)
    heading = re.match(r"#+\s+(.+)", text)
    return (Passage(text, heading[1].strip() if heading else location, location),) if text else ()


def _search_hit(item: dict[str, Any]) -> Passage | None:
    """Return an object as a passage; None if it lacks a text, or both title and location."""
    fields = {key.lower(): value for key, value in item.items()}
    title, location, text = (
        next((fields[name] for name in names if isinstance(fields.get(name), str) and fields[name]), "")
        for names in (TITLE_KEYS, LOCATION_KEYS, TEXT_KEYS)
    )
    return Passage(text, title or location, location) if text and (title or location) else None


def _report_passages(text: str) -> tuple[Passage, ...]:
    """Return a sub-agent's report as passages: its text first, then the pages and files it names as sources."""
    body = re.split(r"(?m)^(?:#+\s*|\*\*)?Sources?\b", text)[0]
    pages = [Passage("", link[1], link[2]) for link in LINK.finditer(text)]
    linked = " ".join(page.location for page in pages)
    urls = [Passage("", url, url) for url in dict.fromkeys(URL.findall(text)) if url.rstrip(".,") not in linked]
    files = [Passage("", name, name) for name in re.findall(r"`([^`\n]+)`", text[len(body) :])]
    return (Passage(LINK.sub(r"\1", body).strip()), *pages, *urls, *files)


def _is_listing(text: str) -> bool:
    """Whether a text is a file listing, in which each line is a file name."""
    lines = [re.sub(r"^\s*[-*]\s+", "", line).strip() for line in text.splitlines() if line.strip()]
    return bool(lines) and all(FILE.fullmatch(line) or re.fullmatch(r"\S+/", line) for line in lines)


def _markdown(text: str) -> str:
    """Return a result as Markdown: data as a table or a list, text as a quotation, a single line unchanged."""
    data = _parse_data(text)
    objects = _objects(data)
    if isinstance(data, dict) and len(objects) == 1:
        return _list([f"**{name.replace('_', ' ')}**: {_cell(value)}" for name, value in objects[0].items()])
    if objects:
        columns = list(objects[0])[:MAX_COLUMNS]
        return _table([columns, *([_cell(item.get(name, "")) for name in columns] for item in objects)])
    if data is not None:
        return _list([_cell(item) for item in cast("list[Any]", data)])
    if rows := _csv_rows(text):
        return _table(rows)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) == 1:
        return truncate(lines[0], 240)
    return _list(lines)


def _list(items: Sequence[str]) -> str:
    more = [f"- … {len(items) - MAX_LINES} more"] if len(items) > MAX_LINES else []
    return "\n".join([*(f"- {truncate(item, 160)}" for item in items[:MAX_LINES]), *more])


def _table(rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(truncate(cell.replace('|', '/'), 60) for cell in row)} |" for row in rows[: MAX_ROWS + 1]]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    more = len(rows) - 1 - MAX_ROWS
    return "\n".join(lines) + (f"\n\n… and {more} more rows." if more > 0 else "")


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        value = [f"{name} {item}" for name, item in cast("dict[str, Any]", value).items()]
    if isinstance(value, list):
        value = ", ".join(map(str, cast("list[Any]", value)))
    return truncate(" ".join(str(value).split()), 120)


def _csv_rows(text: str) -> list[list[str]]:
    """Parse comma-separated values into rows; [] unless there are at least two rows of equal length."""
    lines = text.splitlines()
    if len(lines) < 2 or "," not in lines[0] or re.search(r"[.!?]\s|[.!?]$", lines[0]):
        return []
    try:
        rows = [[cell.strip() for cell in row] for row in csv.reader(lines[:200]) if row]
    except csv.Error:
        return []
    has_one_width = len({len(row) for row in rows}) == 1 and len(rows[0]) > 1
    return rows if has_one_width and all(len(cell) < 60 for row in rows for cell in row) else []
