"""The loop of the tests: it ends closing connections, and reports connections that a test leaves open."""

import asyncio
import gc
import socket

import pytest

from tests.support.checked_loop import CheckedLoop, OpenConnections


async def connect(connection: socket.socket) -> asyncio.Transport:
    transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, sock=connection)
    return transport


async def test_tests_have_such_a_loop() -> None:
    assert isinstance(asyncio.get_running_loop(), CheckedLoop)


def test_closing_connection_is_ended_before_the_loop_is_closed() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        loop = CheckedLoop()
        loop.run_until_complete(connect(ours)).close()
        loop.close()
        assert ours.fileno() == -1


def test_open_connection_is_reported_when_the_loop_is_closed() -> None:
    ours, theirs = socket.socketpair()
    with theirs, ours:
        loop = CheckedLoop()
        transport = loop.run_until_complete(connect(ours))
        with pytest.raises(OpenConnections, match="_SelectorSocketTransport"):
            loop.close()
        with pytest.warns(ResourceWarning):
            del transport
            gc.collect()
