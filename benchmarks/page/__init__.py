"""Benchmark of the page, by the browser's own clock: long sessions, fast streams, long answers."""
