"""The built page in a real Chromium, with the real server behind it."""
