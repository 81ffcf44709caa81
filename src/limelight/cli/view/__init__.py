"""The terminal views of a run: its state, the formatting of lines, the plain and the live view."""
