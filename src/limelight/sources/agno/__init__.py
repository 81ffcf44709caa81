"""Source for Agno agents and teams."""

from limelight.sources.agno.source import AgnoSource

__all__ = ["AgnoSource"]
