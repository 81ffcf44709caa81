"""An event loop that checks its connections when it is closed.

asyncio reports an unclosed connection when it is garbage-collected, which is during a later test. This loop reports it
at the end of the test that has opened it.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

TURNS = 10
"""Turns of the loop before it is closed: more than a transport needs to end after its `close`."""


class OpenConnections(Exception):
    """Connections are open at the end of a test."""


class CheckedLoop(asyncio.SelectorEventLoop):
    """Ends the connections that are being closed, and raises OpenConnections if others are open."""

    _transports: Mapping[int, Any]

    def close(self) -> None:
        if self.is_closed():
            return
        self.run_until_complete(self._end_closing_connections())
        left_open = [repr(transport) for transport in self._transports.values() if not transport.is_closing()]
        super().close()
        if left_open:
            raise OpenConnections(", ".join(left_open))

    async def _end_closing_connections(self) -> None:
        for _ in range(TURNS):
            await asyncio.sleep(0)
