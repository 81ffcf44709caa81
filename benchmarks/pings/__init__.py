"""How soon a socket answers while agents of other sessions are at work."""
