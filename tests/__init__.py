"""Tests mirror src; `server/` and `faults/` talk to real servers over loopback."""
