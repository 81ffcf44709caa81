"""The wire format of DeepSearchAgents' Web API v2, for agents of any framework."""

from limelight.dialects.v2.dialect import V2Dialect

__all__ = ["V2Dialect"]
