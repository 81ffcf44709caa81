"""Agno's agents and teams as a source."""

from limelight.sources.agno.source import AgnoSource

__all__ = ["AgnoSource"]
