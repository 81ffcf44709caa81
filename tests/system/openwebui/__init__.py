"""The pipe in a real Open WebUI, driven by a real Chromium."""
