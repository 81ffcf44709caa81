"""Guesses the kind of a tool, such as `search` or `read`, from its name and its parameters.

Pure. A wrong guess leads to an odd call, but never to arguments that do not fit the tool's schema.
"""

import re
from typing import Literal

from limelight.understudy.chat_requests import Tool

Kind = Literal["final", "plan", "delegate", "wait", "code", "write", "calculate", "list", "search", "read", "other"]

NAME_WORDS: dict[Kind, str] = {
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
"""Words in tool names that indicate a kind of tool. The first match counts: `write_todos` is a plan tool."""

PATH_FIELDS = ("path", "file_path", "filepath", "file", "filename", "file_name", "name", "directory", "dir", "folder")
QUERY_FIELDS = ("query", "q", "pattern", "keyword", "keywords", "term", "question", "regex", "topic", "words", "search")
TASK_FIELDS = ("task", "description", "prompt", "request", "input", "task_description", "message")
MEMBER_FIELDS = ("subagent_type", "member_id", "agent", "agent_name", "member", "assignee")


def kind_of(tool: Tool) -> Kind:
    if tool.name == "final_answer":
        return "final"
    words = set(re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", tool.name).lower()))
    fields = set(tool.properties)
    if tool.name == "task" or fields & {"subagent_type", "member_id"} or {"task", "additional_args"} <= fields:
        return "delegate"
    kinds: list[Kind] = [kind for kind, known in NAME_WORDS.items() if words & set(known.split())]
    if kinds and kinds[0] in ("code", "plan"):  # `list_todos` lists, `search_code` searches
        kinds.sort(key=lambda kind: kind not in ("list", "search"))
    return kinds[0] if kinds else _kind_by_fields(tool, fields)


def _kind_by_fields(tool: Tool, fields: set[str]) -> Kind:
    types = [schema.get("type") for schema in tool.properties.values()]
    if "code" in fields:
        return "code"
    if len(types) >= 2 and all(name in ("number", "integer") for name in types):
        return "calculate"
    if fields & {"query", "pattern", "q"}:
        return "search"
    if fields & {"path", "file_path", "filename", "url"}:
        return "read"
    return "other"
