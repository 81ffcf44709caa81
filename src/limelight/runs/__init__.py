"""Runs of agents: their execution, sessions, log, viewers, recovery and retention."""
