"""Puts the pipe into an Open WebUI. The pipe itself is one file that imports nothing of ours."""
