"""A run from its first frame to its last, whatever happens to the connection."""

import asyncio
import time
from collections.abc import AsyncIterator

import httpx

from openwebui.parts.frames import SIGN_OF_LIFE, Frame, frames_of, is_repeated
from openwebui.parts.live_run import turn_of
from openwebui.parts.server import PASSING, Lost, Refused, Server, describe
from openwebui.parts.types import Json

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 5.0
FIRST_PATIENCE = 10
"""Seconds for a server that never answered: it may be starting, but somebody waits in front of an empty chat."""
MOST_TRIES = 20


class Following:
    """Begins the run and follows it. A lost connection is taken up again behind the last frame."""

    def __init__(self, server: Server, request: Json, patience: float) -> None:
        self._server = server
        self._request = {**request, "if_busy": "error"}
        self._patience = patience
        self._cursor = ""
        self._lost = False
        self._lost_at = 0.0
        """When the time began that runs out: as long as connections only greet, it goes on."""
        self._answered = False
        self._tries = 0

    async def frames(self) -> AsyncIterator[Frame]:
        while True:
            try:
                async for frame in self._attempt():
                    yield frame
                    if frame.type == "done":
                        return
                reason = "the stream ended early"
            except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:  # waiting will not mend it
                raise Lost(self._farewell(str(error))) from error
            except httpx.LocalProtocolError as error:  # nor this, and its words may hold the key
                raise Lost(self._farewell(describe(error))) from None
            except httpx.HTTPError as error:
                reason = describe(error)
            except Refused as refused:
                if refused.code == "session_busy" and self._tries < MOST_TRIES:
                    yield await self._take_turn()
                    continue
                if refused.status not in PASSING:
                    raise
                reason = str(refused)
            yield Frame("_lost", {"reason": self._losing(reason)})
            await asyncio.sleep(min(LONGEST_PAUSE, FIRST_PAUSE + (time.monotonic() - self._lost_at) / 4))

    async def _attempt(self) -> AsyncIterator[Frame]:
        """One connection. The request id makes a second POST safe: it gives the first one's run."""
        run_id = self._server.run_id
        path = f"/runs/{run_id}/stream?format=typed" if run_id else "/chat/stream?format=typed"
        async with self._server.open(path, None if run_id else self._request, self._cursor) as response:
            if response.status_code == 204:  # it ended, and all of it is here
                yield Frame("done", {})
                return
            self._answered = True
            self._server.run_id = response.headers.get("x-run-id", run_id)
            signs = 0
            async for frame in frames_of(response.aiter_bytes()):
                if self._lost:  # a connection that brings nothing is none
                    self._lost = False
                    yield Frame("_found", {})
                if frame is SIGN_OF_LIFE:
                    signs += 1
                if signs > 1 or frame is not SIGN_OF_LIFE:  # the first may be the greeting of one that falls over
                    self._lost_at = 0.0
                if frame is not SIGN_OF_LIFE:
                    self._cursor = frame.cursor or self._cursor
                    if not is_repeated(frame):
                        yield frame

    async def _take_turn(self) -> Frame:
        """Another run is live in this chat: wait for it, or stop it."""
        self._tries += 1
        if self._request["if_busy"] == "error":
            self._request["if_busy"] = await turn_of(self._server, self._request)
        if self._request["if_busy"] == "wait":
            return Frame("_waiting", {})
        await asyncio.sleep(FIRST_PAUSE)
        return Frame("_again", {})

    def _losing(self, reason: str) -> str:
        """Raises Lost when there is no more hope: the time is over, or the server does not know of resuming."""
        self._lost = True
        self._lost_at = self._lost_at or time.monotonic()
        hopeless = self._answered and not self._server.run_id
        patience = self._patience if self._answered else min(self._patience, FIRST_PATIENCE)
        if hopeless or time.monotonic() - self._lost_at >= patience:
            raise Lost(self._farewell(reason))
        return reason

    def _farewell(self, reason: str) -> str:
        if self._answered:
            return f"The connection to {self._server.url} was lost ({reason}). The agent may still be at work there."
        hint = "Is it running, and is the valve DEEP_AGENT_URL right?"
        return f"The Limelight server at {self._server.url} cannot be reached ({reason}). {hint}"
