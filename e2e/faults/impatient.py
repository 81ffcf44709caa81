"""Agents of a server that gives up on silent connections after seconds, not minutes. Loading this file sets it."""

from limelight.server import connection, serving
from tests.faults.cast import chatty, endless, hello, quiet

__all__ = ["chatty", "endless", "hello", "quiet"]

serving.PING_SECONDS = serving.PONG_SECONDS = 1
connection.UNREAD_SECONDS = 2
