"""Dialects: each encodes Records as frames of one wire format, without I/O and without a clock."""
