"""Source for smolagents: CodeAgent and ToolCallingAgent, with their managed agents (sub-agents).

Each conversation has a copy of the user's agent (`conversation`). Each turn runs an instrumented clone of the copy in a
thread, because smolagents blocks (`instrument`). The clone emits reports (`reports`), and the translator turns the
reports into Events. The translator uses neither threads nor smolagents.
"""

from limelight.sources.smolagents.source import SmolagentsSource

__all__ = ["SmolagentsSource"]
