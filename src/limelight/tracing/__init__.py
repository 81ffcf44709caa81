"""Tracing: the Records of a run become spans of OpenTelemetry's GenAI conventions.

`run_trace` is pure: Records in, finished spans out. `tracer` follows all runs of a server. `exporter` sends spans and
is the only module that imports OpenTelemetry. The code that runs agents does not depend on tracing.
"""
