"""The built-in agent `demo`, which works with real files and needs no model."""
