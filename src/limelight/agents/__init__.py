"""Finds, loads and validates the agents that a server offers, from command-line targets and settings."""
