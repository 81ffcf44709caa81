"""The demo: an agent that works with real files and needs no model."""
