"""Benchmark of floods: one user floods a wire or a route of the server; the latencies of another are measured."""
