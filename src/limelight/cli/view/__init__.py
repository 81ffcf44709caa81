"""How a run looks in a terminal: a story that is folded from Records, and two ways to draw it."""
