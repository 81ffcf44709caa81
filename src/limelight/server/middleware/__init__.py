"""ASGI middleware that applies to every response."""
