"""LangGraph as a source: any compiled graph, deepagents' among them."""

from limelight.sources.langgraph.source import LangGraphSource

__all__ = ["LangGraphSource"]
