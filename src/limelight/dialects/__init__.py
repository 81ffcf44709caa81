"""Dialects turn Records into the frames of one wire protocol each: pure, without I/O and without a clock."""
