"""What a tool is probably for, by its name and the shape of its parameters.

Pure, and only a guess: a wrong one costs a call that looks odd, never one that does not fit the tool's schema.
The improviser decides by kinds which tools to call; recipes say with what.
"""

import re
from typing import Literal

from limelight.understudy.conversation import Tool

Kind = Literal["final", "plan", "delegate", "wait", "code", "write", "calculate", "list", "search", "read", "other"]

TELLING: dict[Kind, str] = {
    "plan": "todo todos plan planning",
    "delegate": "delegate member members subagent handoff transfer helper teammate",
    "wait": "sleep wait delay pause slow",
    "code": "python interpreter code notebook",
    "write": "write delete remove edit create execute exec shell bash terminal command send update insert drop move "
    "rename save publish deploy append patch upload kill",
    "calculate": "add subtract multiply divide calculate calculator sum math compute evaluate plus minus times power "
    "exponentiate factorial sqrt average",
    "list": "ls list dir tree glob directory",
    "search": "search grep find query lookup browse google duckduckgo wikipedia wiki",
    "read": "read open cat view fetch visit readurl download scrape",
}
"""Words of a name, the more telling first: `write_todos` plans, `list_todos` lists, `search_code` searches."""

PATHS = ("path", "file_path", "filepath", "file", "filename", "file_name", "name", "directory", "dir", "folder")
QUERIES = ("query", "q", "pattern", "keyword", "keywords", "term", "question", "regex", "topic", "words", "search")


def kind_of(tool: Tool) -> Kind:
    if tool.name == "final_answer":
        return "final"
    words = set(re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", tool.name).lower()))
    fields = set(tool.properties)
    if tool.name == "task" or fields & {"subagent_type", "member_id"} or {"task", "additional_args"} <= fields:
        return "delegate"
    found: list[Kind] = [kind for kind, telling in TELLING.items() if words & set(telling.split())]
    looking: list[Kind] = [kind for kind in found if kind in ("list", "search")]
    if looking and found[0] in ("code", "plan"):
        return looking[0]
    return found[0] if found else _by_shape(tool, fields)


def _by_shape(tool: Tool, fields: set[str]) -> Kind:
    types = [schema.get("type") for schema in tool.properties.values()]
    if "code" in fields:
        return "code"
    if len(types) >= 2 and all(kind in ("number", "integer") for kind in types):
        return "calculate"
    if fields & {"query", "pattern", "q"}:
        return "search"
    if fields & {"path", "file_path", "filename", "url"}:
        return "read"
    return "other"
