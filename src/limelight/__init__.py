"""Limelight puts an agent's work in the light: one durable log of typed events, streamed live to any client.

Importing this package pulls in no agent framework and no web server.
"""

__version__ = "0.1.0"
