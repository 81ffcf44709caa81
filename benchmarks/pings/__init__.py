"""Benchmark of pings: their latency on a WebSocket while agents of other sessions work."""
