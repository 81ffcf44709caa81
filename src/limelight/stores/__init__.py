"""Stores keep sessions and Records. `base` is the contract; each other file is one engine behind it."""
