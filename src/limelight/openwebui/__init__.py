"""Installs the pipe, the function that shows Limelight's agents in Open WebUI. It does not import this package."""
