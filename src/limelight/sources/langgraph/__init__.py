"""Source for LangGraph graphs, which agents of LangChain and deepagents are."""

from limelight.sources.langgraph.source import LangGraphSource

__all__ = ["LangGraphSource"]
