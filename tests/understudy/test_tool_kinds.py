"""The kind of a tool follows from its name, otherwise from its parameters."""

from typing import Any

import pytest

from limelight.understudy.chat_requests import Tool
from limelight.understudy.tool_kinds import kind_of
from tests.understudy.request_builders import NUMBER, STRING


@pytest.mark.parametrize(
    ("name", "fields", "kind"),
    [
        ("final_answer", {"answer": STRING}, "final"),
        ("write_todos", {"todos": {"type": "array"}}, "plan"),
        ("list_todos", {}, "list"),
        ("ls", {"path": STRING}, "list"),
        ("listFiles", {}, "list"),
        ("read_file", {"file_path": STRING}, "read"),
        ("readurl", {"url": STRING}, "read"),
        ("grep", {"pattern": STRING}, "search"),
        ("search_code", {"q": STRING}, "search"),
        ("wikipedia_lookup", {"q": STRING}, "search"),
        ("add", {"a": NUMBER, "b": NUMBER}, "calculate"),
        ("task", {"description": STRING, "subagent_type": STRING}, "delegate"),
        ("delegate_task_to_member", {"member_id": STRING, "task": STRING}, "delegate"),
        ("poet", {"task": STRING, "additional_args": {"type": "object"}}, "delegate"),
        ("python_interpreter", {"code": STRING}, "code"),
        ("write_file", {"path": STRING}, "write"),
        ("execute", {"command": STRING}, "write"),
        ("delete", {"path": STRING}, "write"),
        ("sleep", {"seconds": NUMBER}, "wait"),
        # by parameters
        ("zig", {"code": STRING}, "code"),
        ("zig", {"a": NUMBER, "b": NUMBER}, "calculate"),
        ("zig", {"query": STRING}, "search"),
        ("zig", {"url": STRING}, "read"),
        ("zig", {"x": STRING}, "other"),
        ("zig", {}, "other"),
    ],
)
def test_kind_of_tool(name: str, fields: dict[str, Any], kind: str) -> None:
    assert kind_of(Tool(name, "", {"type": "object", "properties": fields})) == kind
