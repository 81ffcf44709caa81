"""Agents on offer: from targets and settings to the agents that a server serves."""
