"""A real server in the test's own event loop, and what tests do with it: ask, read frames, wait."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from limelight.agents.load import wrap
from limelight.config import load_settings
from limelight.runs.agent_registry import Agent
from limelight.server.app import create_app
from limelight.server.process.uvicorn_server import LimelightServer, bind
from limelight.server.runtime import Runtime
from limelight.sources.base import NO_OPTIONS, Options
from tests.support.wait import DEADLINE

REUSE_SECONDS = 1
CONNECTION_LIMITS = httpx.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=REUSE_SECONDS)
"""Limits of a test's HTTP client, which reuses no connection that was idle for longer than REUSE_SECONDS. The server
closes idle connections too, and a request on a connection that is closed at that moment fails."""


class Frame(NamedTuple):
    """One frame of a stream."""

    id: str
    data: Any

    @property
    def type(self) -> str:
        return self.data["type"]


class Served(NamedTuple):
    """A server that runs, and a client that talks to it."""

    url: str
    runtime: Runtime
    http: httpx.AsyncClient

    def ask(self, text: str, **body: Any) -> "AsyncIterator[Frame]":
        """POST /chat/stream and the frames of the answer."""
        format_ = body.pop("format", None)
        return self.stream(
            "POST", "/chat/stream", params={"format": format_} if format_ else {}, json=asking(text, **body)
        )

    async def stream(self, method: str, path: str, **options: Any) -> AsyncIterator[Frame]:
        async with self.http.stream(method, path, **options) as response:
            assert response.status_code == 200, await response.aread()
            async for frame in frames(response):
                yield frame

    async def problem(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        """A request that is refused: the body of the refusal, which must be problem+json."""
        response = await self.http.request(method, path, **options)
        assert response.headers["content-type"] == "application/problem+json", response.text
        body = response.json()
        assert body["status"] == response.status_code
        return body


def asking(text: str, **body: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], **body}


async def frames(response: httpx.Response) -> AsyncIterator[Frame]:
    """Parse the stream by the letter: LF only, blocks of lines, comments skipped."""
    buffer = ""
    async for text in response.aiter_text():
        assert "\r" not in text
        buffer += text
        while "\n\n" in buffer:
            block, buffer = buffer.split("\n\n", 1)
            fields = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
            if "data" in fields:
                yield Frame(fields.get("id", ""), json.loads(fields["data"]))


async def collect(stream: AsyncIterator[Frame], until: Callable[[Frame], bool] | None = None) -> list[Frame]:
    """The frames of a stream, up to and with the first that fits."""
    found: list[Frame] = []
    async for frame in stream:
        found.append(frame)
        if until is not None and until(frame):
            break
    return found


def text_of(found: list[Frame]) -> str:
    """What the main agent said, without the text that repeats an error."""
    tokens = [f.data["data"] for f in found if f.type == "token"]
    return "".join(data["content"] for data in tokens if data["agent_depth"] == 0 and "fallback_for" not in data)


def offer(target: Any, name: str = "", options: Options = NO_OPTIONS, **settings: Any) -> Agent:
    """A function, or an agent object, as an agent on offer."""
    name = name or target.__name__
    return Agent(name=name, source=wrap(target, name, options), title=name, description="", **settings)


def client_of(url: str, **options: Any) -> httpx.AsyncClient:
    """A client without certificates, which take 20 ms to load: the server speaks plain HTTP."""
    options = {"timeout": DEADLINE, "trust_env": False, "verify": False, "limits": CONNECTION_LIMITS, **options}
    return httpx.AsyncClient(base_url=url, **options)


@asynccontextmanager
async def serving(
    *functions: Callable[..., Any], data: Path, agents: Sequence[Agent] = (), **settings: Any
) -> AsyncGenerator[Served]:
    """Serve these agents on a free port until the block ends. Settings are given as `section__key=value`."""
    overrides = {tuple(name.split("__", 1)): value for name, value in settings.items()}
    overrides["store", "data"] = str(data)
    overrides.setdefault(("understudy", "pace_ms"), 0)
    loaded = load_settings(environ={}, overrides=overrides)  # pyright: ignore[reportArgumentType]
    listener = bind("127.0.0.1", 0)
    server = LimelightServer(
        create_app(loaded, [*agents, *(offer(f) for f in functions)]), listener, announce=lambda _: None
    )
    task = asyncio.create_task(server.serve())
    try:
        while not server.started:
            assert not task.done(), task.exception()
            await asyncio.sleep(0.005)
        assert server.config.timeout_keep_alive > REUSE_SECONDS
        async with client_of(server.url) as http:
            yield Served(server.url, server.runtime, http)
    finally:
        server.should_exit = True
        await asyncio.wait_for(task, DEADLINE)
