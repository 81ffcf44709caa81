"""Traces: what the log says of a run, as spans of OpenTelemetry's GenAI conventions.

`run_trace` is pure, Records in and finished spans out; `tracing` follows all runs of a server; `exporter` is the edge,
and the only module that knows OpenTelemetry. Runs do not know that they are followed.
"""
