"""ASGI middleware that applies to every request."""
