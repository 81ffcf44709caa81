"""How a run looks in a terminal: its state, the lines that are drawn, the plain and the live view."""
