"""Benchmark of the page in a real browser, which measures the times: long sessions, fast streams, long answers."""
