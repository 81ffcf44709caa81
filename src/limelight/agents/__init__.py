"""Loads, validates and resolves the agents that a server offers, from targets and settings."""
