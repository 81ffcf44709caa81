"""Reads markdown as far as the tests of the documents need it: code blocks, sections, tables."""

import re


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def sections(text: str, level: int) -> dict[str, str]:
    """The text below each heading of a level, up to the next heading of that level or above."""
    code = r"^```.*?^```$"
    marks = [
        match
        for match in re.finditer(rf"{code}|^(#{{1,{level}}}) ([^\n]+)$", text, flags=re.MULTILINE | re.DOTALL)
        if match[1]
    ]
    ends = [match.start() for match in marks[1:]] + [len(text)]
    return {match[2]: text[match.end() : end] for match, end in zip(marks, ends, strict=True) if len(match[1]) == level}


def rows(text: str) -> list[list[str]]:
    """The rows of all tables in a text, without their heads."""
    found: list[list[str]] = []
    for table in re.findall(r"(?:^\|.*\n?)+", without_code(text), flags=re.MULTILINE):
        lines = table.strip().splitlines()[2:]
        found += [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return found


def codes(text: str) -> set[str]:
    return set(re.findall(r"`([^`\n]+)`", text))


def anchors(text: str) -> set[str]:
    """The anchors of all headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", without_code(text), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}
