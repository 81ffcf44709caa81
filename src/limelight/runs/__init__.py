"""Runs: one run's life, what all runs share, and how viewers follow them."""
