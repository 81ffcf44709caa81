"""smolagents as a source: CodeAgent and ToolCallingAgent, with the agents that they manage.

A served agent is never the user's object: each conversation has a copy of it (`copying`), and each turn taps a clone of
that (`tapping`), in a thread, as smolagents blocks. What the taps hear are signals (`signals`); the translator makes
Events of them, and knows neither threads nor smolagents.
"""

from limelight.sources.smolagents.source import SmolagentsSource

__all__ = ["SmolagentsSource"]
