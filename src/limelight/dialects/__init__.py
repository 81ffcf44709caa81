"""Dialects: each encodes the Records of the log as frames of one wire format, without I/O and without a clock."""
