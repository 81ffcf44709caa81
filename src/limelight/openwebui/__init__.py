"""Installs the pipe into an Open WebUI. The pipe is one file that does not import this package."""
