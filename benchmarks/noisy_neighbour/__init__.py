"""Benchmark of a noisy neighbour: how a user who reaches all limits at once affects the latencies of another user."""
