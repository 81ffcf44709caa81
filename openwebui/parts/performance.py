"""One call of the pipe: one run, followed from its first frame to its last."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator

from openwebui.parts.asking import Asker
from openwebui.parts.busy import own_run
from openwebui.parts.citations import Citations
from openwebui.parts.collapse import CollapseDisplay
from openwebui.parts.details import DetailsDisplay
from openwebui.parts.display import Display
from openwebui.parts.ending import Ending
from openwebui.parts.fetching import Fetcher
from openwebui.parts.files import Files
from openwebui.parts.following import Following
from openwebui.parts.frames import Frame
from openwebui.parts.native import NativeDisplay
from openwebui.parts.pacing import paced
from openwebui.parts.request import request_of
from openwebui.parts.server import Lost, Refused, Server, advice
from openwebui.parts.status import StatusLine
from openwebui.parts.story import Story
from openwebui.parts.todos import Todos
from openwebui.parts.values import Ask, Chunk, Emit, Json
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

    async def whole(self) -> str:
        """The answer as text, for callers who want no stream."""
        async with Server(self._valves, self._user) as server:
            try:
                reply = await server.call("POST", "/chat", {**self._request, "if_busy": "wait"}, seconds=3600)
                return str(reply["message"]["content"])
            except (Refused, Lost) as error:
                return f"Error: {advice(error)}"

    async def stream(self) -> AsyncGenerator[Chunk, None]:
        async with Server(self._valves, self._user) as server:
            queue: asyncio.Queue[Frame | None] = asyncio.Queue(1000)
            story = Story()
            display = self._display(story, server)
            ending = Ending(story, usage=self._emit_to is not None)
            files = Files(story, images_in_rows=isinstance(display, NativeDisplay))
            status = StatusLine(self._choices)
            todos = Todos()
            citations = Citations(story, lambda: server.run_id, self._choices)
            fetcher = Fetcher(server, self._valves.PUBLIC_URL)
            asker = Asker(server, self._ask, queue.put, self._metadata)
            reader = asyncio.create_task(self._read(server, queue))
            try:
                async for frames in paced(queue):
                    for pointer in frames:
                        frame = await fetcher.complete(pointer)
                        for part in (story, display, ending, files, asker):
                            part.feed(frame)
                        for event in [*status.feed(frame), *todos.feed(frame), *citations.feed(frame)]:
                            await self._emit(event)
                    for chunk in display.flush():
                        yield chunk
                display.close()
                for chunk in [*display.flush(), *ending.chunks()]:
                    yield chunk
            except (asyncio.CancelledError, GeneratorExit):
                ending.line = "Stopped"
                await self._stop(server)
                raise
            except Exception as error:  # raised, it would take all that was shown with it
                ending.feed(Frame("error", {"message": f"{type(error).__name__}: {error}"}))
                display.close()
                for chunk in [*display.flush(), *ending.chunks()]:
                    yield chunk
            finally:
                reader.cancel()
                await asyncio.gather(reader, asker.close(), return_exceptions=True)
                await self._emit(files.end())
                await self._emit(todos.end())
                await self._emit(status.end(ending.line))

    def _display(self, story: Story, server: Server) -> Display:
        if self._emit_to is None:
            return DetailsDisplay(story, time.monotonic, blocks=False)
        match self._choices.display:
            case "collapse" | "plain" as chosen:
                return CollapseDisplay(story, lambda: server.run_id, show_steps=chosen == "collapse")
            case "details":
                return DetailsDisplay(story, time.monotonic)
            case _:
                return NativeDisplay(story, lambda: server.run_id, time.monotonic)

    async def _read(self, server: Server, queue: asyncio.Queue[Frame | None]) -> None:
        """Frames into the queue, until the run ends or the server is lost; both end the queue."""
        try:
            async for frame in Following(server, self._request, self._valves.RECONNECT_SECONDS).frames():
                await queue.put(frame)
        except (Refused, Lost) as error:
            await queue.put(Frame("error", {"message": advice(error)}))
        except Exception as error:  # whatever happens, the chat keeps what it has and is told
            await queue.put(Frame("error", {"message": f"{type(error).__name__}: {error}"}))
        await queue.put(None)

    async def _stop(self, server: Server) -> None:
        with contextlib.suppress(Refused, Lost):
            run_id = server.run_id or await own_run(server, self._request)
            if run_id:
                await server.call("POST", f"/runs/{run_id}/cancel", {"reason": "stopped in Open WebUI"}, 5)

    async def _emit(self, event: Json | None) -> None:
        if event is not None and self._emit_to is not None:
            with contextlib.suppress(Exception):  # a line that cannot be drawn must not end the run
                await self._emit_to(event)
