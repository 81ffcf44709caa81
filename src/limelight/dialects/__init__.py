"""Dialects: each turns Records into the frames of one wire format, without I/O and without a clock."""
