"""The latency of a socket's pings while agents of other sessions work."""
