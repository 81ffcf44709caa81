"""Approvals at the terminal: which are open, the dialogue about one, and how it is answered."""
