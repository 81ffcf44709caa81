"""Agents of a server that gives up on silent connections after seconds, not minutes. Loading this file sets it."""

from limelight.server.process import uvicorn_protocols, uvicorn_server
from tests.system.processes.agents import chatty, endless, hello, quiet

__all__ = ["chatty", "endless", "hello", "quiet"]

uvicorn_server.PING_SECONDS = uvicorn_server.PONG_SECONDS = 2
uvicorn_protocols.UNREAD_SECONDS = 4
