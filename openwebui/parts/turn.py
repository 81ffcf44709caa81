"""One call of the pipe: one run, followed from its first frame to its last."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from openwebui.parts.approvals import Asker
from openwebui.parts.batching import paced
from openwebui.parts.cancellation import STOPPED, STOPPED_HERE, stop
from openwebui.parts.displays import TEXT
from openwebui.parts.frames import Frame
from openwebui.parts.live_run import followed
from openwebui.parts.request import request_of
from openwebui.parts.run_stream import Following
from openwebui.parts.run_view import LOG, Scene
from openwebui.parts.server import Lost, Refused, Server, advice
from openwebui.parts.status import thinned
from openwebui.parts.types import Ask, Chunk, Emit, Json
from openwebui.parts.valves import Choices, Valves


class Performance:
    """`emit` and `ask` reach the chat; a caller of Open WebUI's own API has neither, and gets text only."""

    def __init__(
        self, valves: Valves, body: Json, user: Json, metadata: Json, emit: Emit | None, ask: Ask | None
    ) -> None:
        self._valves = valves
        self._user = user
        self._metadata = metadata
        self._emit_to = emit
        self._ask = ask
        self._request = request_of(body, user, metadata)
        self._choices = Choices.of(valves, user.get("valves"))
        if emit is None:
            self._choices = self._choices._replace(display=TEXT)

    async def whole(self) -> str:
        """The same as a text, for callers who want no stream."""
        self._choices = self._choices._replace(display=TEXT)
        text, problem = "", ""
        async with contextlib.aclosing(self.stream()) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, str):
                    text += chunk
                elif "error" in chunk:
                    problem = f"Error: {chunk['error']['message']}"
        return f"{text}\n\n{problem}".strip() if problem else text

    async def stream(self) -> AsyncGenerator[Chunk, None]:
        async with followed(self._request), Server(self._valves, self._user) as server:
            queue: asyncio.Queue[Frame | None] = asyncio.Queue(1000)
            asker = Asker(server, self._ask, queue.put, self._metadata)
            scene = Scene(server, self._choices, self._valves.PUBLIC_URL, asker)
            reader = asyncio.create_task(self._read(server, queue))
            try:
                async for frames in paced(queue):
                    events = [event for frame in frames for event in await scene.hear(frame)]
                    for chunk in scene.drawn():
                        yield chunk
                    for event in thinned(events):  # Open WebUI stores the chat anew for each
                        await self._emit(event)
                for chunk in scene.close():
                    yield chunk
            except (asyncio.CancelledError, GeneratorExit):
                scene.ending.line = STOPPED
                if not await self._stop(server):
                    scene.ending.line = STOPPED_HERE
                raise
            except Exception as error:  # raised, it would take all that was shown with it
                scene.ending.feed(await self._broken(server, error))
                for chunk in scene.close():
                    yield chunk
            finally:
                reader.cancel()
                await asyncio.gather(reader, asker.close(), return_exceptions=True)
                for event in scene.farewell():
                    await self._emit(event)

    async def _read(self, server: Server, queue: asyncio.Queue[Frame | None]) -> None:
        """Frames into the queue, until the run ends or the server is lost; both end the queue."""
        try:
            async for frame in Following(server, self._request, self._valves.RECONNECT_SECONDS).frames():
                await queue.put(frame)
        except (Refused, Lost) as error:
            await queue.put(Frame("error", {"message": advice(error)}))
        except Exception as error:  # whatever happens, the chat keeps what it has and is told
            await queue.put(await self._broken(server, error))
        await queue.put(None)

    async def _broken(self, server: Server, error: Exception) -> Frame:
        """A mistake of the pipe itself: nobody will see what the run does, so it ends."""
        LOG.error("The Deep Agent Pipe broke", exc_info=error)
        await self._stop(server)
        return Frame("error", {"message": f"{type(error).__name__}: {error}"})

    async def _stop(self, server: Server) -> bool:
        return await stop(self._valves, self._user, server.run_id, self._request)

    async def _emit(self, event: Json) -> None:
        if self._emit_to is not None:
            with contextlib.suppress(Exception):  # a line that cannot be drawn must not end the run
                await self._emit_to(event)
