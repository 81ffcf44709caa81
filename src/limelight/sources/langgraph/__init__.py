"""Source for LangGraph graphs, including the agents of LangChain and deepagents."""

from limelight.sources.langgraph.source import LangGraphSource

__all__ = ["LangGraphSource"]
