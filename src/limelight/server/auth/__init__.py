"""Authentication over HTTP: who sends a request, and what they may do."""
