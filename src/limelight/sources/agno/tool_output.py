"""The events of Agno by which Limelight shows the output of tools that are generators.

Agno appends the `str` of a custom event to the result of the tool that yields it, and of every delegation that passes
it on. The text of a tool belongs only to the first of these results. This module imports Agno, so it is imported only
when an agent runs.
"""

from dataclasses import dataclass

from agno.run.agent import CustomEvent

from limelight.sources.agno.tool_calls import OwnEvent

# pyright: reportUnknownMemberType=false
# Agno's own types are partly unknown.


@dataclass
class ToolText(CustomEvent):
    """A text that a tool has yielded. A team that passes it on changes its `tool_call_id`, but not its `call_id`."""

    event: str = OwnEvent.NAME.value
    content: str = ""

    def __init__(self, content: str = "", call_id: str = "") -> None:
        super().__init__()
        self.content = content
        self.call_id = call_id
        self._is_in_result = False

    def __str__(self) -> str:
        text, self._is_in_result = "" if self._is_in_result else self.content, True
        return text


@dataclass
class ToolEnded(CustomEvent):
    """The end of a tool, with the seconds for which it has run."""

    event: str = OwnEvent.NAME.value
    seconds: float = 0.0

    def __init__(self, seconds: float = 0.0, call_id: str = "") -> None:
        super().__init__()
        self.seconds = seconds
        self.call_id = call_id

    def __str__(self) -> str:
        return ""
