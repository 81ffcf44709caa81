"""Starts a run on the server, yields its frames even if connections are lost, and cancels it."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator

import httpx

from openwebui.parts.frames import DATA_RECEIVED, Frame, Json, as_object, as_objects, parse_frames
from openwebui.parts.server_client import (
    TRANSIENT_STATUSES,
    ConnectionLost,
    LimelightClient,
    RequestRefused,
    error_reason,
)
from openwebui.parts.valves import Valves

RETRY_DELAY = 0.5
MAX_RETRY_DELAY = 5.0
CONNECT_SECONDS = 10
"""Time limit for the first response of the server. It is short, because the user sees an empty chat until then."""
MAX_BUSY_RETRIES = 20
CANCEL_SECONDS = 10.0
CANCEL_RETRY_DELAY = 0.5

LIVE_STATES = ("queued", "running", "waiting")
FOLLOWED_REQUESTS: set[str] = set()
"""The ids of the requests whose runs this process follows."""
CANCEL_TASKS: set[asyncio.Task[bool]] = set()
"""References to the running tasks of `cancel_run`, because the event loop has only weak ones."""


class RunStream:
    """Starts the run of a request and yields its frames. After a lost connection it resumes after the last frame."""

    def __init__(self, client: LimelightClient, request: Json, reconnect_seconds: float) -> None:
        self._client = client
        self._request = {**request, "if_busy": "error"}
        self._reconnect_seconds = reconnect_seconds
        self._cursor = ""
        self._is_lost = False
        self._lost_at = 0.0
        """Start of the time limit for reconnecting. A connection that delivers only one chunk does not reset it."""
        self._has_answered = False
        self._busy_retries = 0

    async def frames(self) -> AsyncIterator[Frame]:
        """Yield all frames of the run, and the pipe's own `_reconnecting`, `_reconnected`, `_queued` and `_retrying`.

        After Stop no further connection is opened.
        Raises RequestRefused, and ConnectionLost when the time limit is over."""
        while not self._client.is_stopping:
            try:
                async for frame in self._connect():
                    yield frame
                    if frame.type == "done":
                        return
                reason = "the stream ended early"
            except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:  # a retry would fail too
                raise ConnectionLost(self._lost_message(str(error))) from error
            except httpx.LocalProtocolError as error:  # a retry would fail too; the text may contain the key
                raise ConnectionLost(self._lost_message(error_reason(error))) from None
            except httpx.HTTPError as error:
                reason = error_reason(error)
            except RequestRefused as refused:
                if refused.code == "session_busy" and self._busy_retries < MAX_BUSY_RETRIES:
                    yield await self._handle_busy_session()
                    continue
                if refused.status not in TRANSIENT_STATUSES:
                    raise
                reason = str(refused)
            self._check_time_limit(reason)
            yield Frame("_reconnecting", {"reason": reason})
            await asyncio.sleep(min(MAX_RETRY_DELAY, RETRY_DELAY + (time.monotonic() - self._lost_at) / 4))

    async def _connect(self) -> AsyncIterator[Frame]:
        """Yield the frames of one connection. A repeated POST is safe: by its request id it returns the same run."""
        run_id = self._client.run_id
        path = f"/runs/{run_id}/stream?format=typed" if run_id else "/chat/stream?format=typed"
        async with self._open(path) as response:
            if response.status_code == 204:  # the run has ended, and nothing follows the cursor
                yield Frame("done", {})
                return
            self._has_answered = True
            chunks = 0
            async for frame in parse_frames(response.aiter_bytes()):
                if self._is_lost:
                    self._is_lost = False
                    yield Frame("_reconnected", {})
                if frame is DATA_RECEIVED:
                    chunks += 1
                if chunks > 1 or frame is not DATA_RECEIVED:  # a server that crashes at once also sends a first chunk
                    self._lost_at = 0.0
                if frame is not DATA_RECEIVED:
                    self._cursor = frame.cursor or self._cursor
                    if not frame.is_repeated:
                        yield frame

    @contextlib.asynccontextmanager
    async def _open(self, path: str) -> AsyncGenerator[httpx.Response, None]:
        """Open a stream, and store the id of the run, which the response names."""
        run_id = self._client.run_id
        self._client.is_starting = not run_id
        try:
            async with self._client.open_stream(path, None if run_id else self._request, self._cursor) as response:
                self._client.run_id = response.headers.get("x-run-id", run_id)
                self._client.is_starting = False
                yield response
        finally:
            self._client.is_starting = False

    async def _handle_busy_session(self) -> Frame:
        """Choose whether the next request waits for the session's live run or cancels it. Return a status frame."""
        self._busy_retries += 1
        if self._request["if_busy"] == "error":
            self._request["if_busy"] = await choose_if_busy(self._client, self._request)
        if self._request["if_busy"] == "wait":
            return Frame("_queued", {})
        await asyncio.sleep(RETRY_DELAY)
        return Frame("_retrying", {})

    def _check_time_limit(self, reason: str) -> None:
        """Raise ConnectionLost if the time limit is over, or if the server has sent no run id to resume with."""
        self._is_lost = True
        self._lost_at = self._lost_at or time.monotonic()
        cannot_resume = self._has_answered and not self._client.run_id
        limit = self._reconnect_seconds if self._has_answered else min(self._reconnect_seconds, CONNECT_SECONDS)
        if cannot_resume or time.monotonic() - self._lost_at >= limit:
            raise ConnectionLost(self._lost_message(reason))

    def _lost_message(self, reason: str) -> str:
        if self._has_answered:
            return f"The connection to {self._client.url} was lost ({reason}). The agent may still be at work there."
        hint = "Is it running, and is the valve DEEP_AGENT_URL right?"
        return f"The Limelight server at {self._client.url} cannot be reached ({reason}). {hint}"


@contextlib.asynccontextmanager
async def registered_request(request: Json) -> AsyncGenerator[None, None]:
    """Context manager: keeps the id of a request in `FOLLOWED_REQUESTS` while this process follows its run."""
    FOLLOWED_REQUESTS.add(request["request_id"])
    try:
        yield
    finally:
        FOLLOWED_REQUESTS.discard(request["request_id"])


async def choose_if_busy(client: LimelightClient, request: Json) -> str:
    """Return the value of `if_busy` for a request whose session has a live run.

    `wait` if that run answers the same question for another model. `cancel` if it answers an older question. `error`
    if this cannot be determined, so that the caller tries again."""
    try:
        run = await find_live_run(client, request)
        if run is None:
            return "error"
        return "wait" if await _is_of_other_model(client, request, run) else "cancel"
    except (ConnectionLost, RequestRefused):
        return "error"


async def find_live_run(client: LimelightClient, request: Json) -> Json | None:
    """Return the live run of the request's session, None without one. Raises ConnectionLost and RequestRefused."""
    try:
        session = await client.request_json("GET", f"/sessions/{request['chat_id']}")
        run = as_object(await client.request_json("GET", f"/runs/{session['run_id']}"))
    except (KeyError, TypeError):
        return None
    except RequestRefused as refused:
        if refused.status != 404:
            raise
        return None
    return run if run.get("state") in LIVE_STATES else None


async def _is_of_other_model(client: LimelightClient, request: Json, run: Json) -> bool:
    """Whether a run answers the same question for another model. Raises ConnectionLost.

    A run of the same agent that this process does not follow remains from an Open WebUI that was killed."""
    question_id, run_request = str(request["request_id"]).partition(".")[0], str(run.get("request_id", ""))
    if not question_id or not run_request.startswith(f"{question_id}."):
        return False
    return run_request in FOLLOWED_REQUESTS or run.get("agent") != await _agent_name(client, request)


async def _agent_name(client: LimelightClient, request: Json) -> str:
    """Return the name of the request's agent, even if it is the default agent. Raises ConnectionLost."""
    if "agent" in request:
        return str(request["agent"])
    try:
        agents = as_objects(as_object(await client.request_json("GET", "/agents")).get("agents"))
    except RequestRefused:
        agents = []
    return next((str(agent.get("name")) for agent in agents if agent.get("default")), "")


async def cancel_run(valves: Valves, user: Json, followed: LimelightClient, request: Json) -> bool:
    """Cancel the run of a request, which `followed` has started or is starting. Return whether no run is left.

    The result is False if the server refuses, cannot be reached, or does not say which run it has started. The task
    continues if the caller is cancelled."""
    followed.is_stopping = True
    task = asyncio.create_task(_cancel_with_retries(valves, user, followed, request))
    CANCEL_TASKS.add(task)
    task.add_done_callback(CANCEL_TASKS.discard)
    return await asyncio.shield(task)


async def _cancel_with_retries(valves: Valves, user: Json, followed: LimelightClient, request: Json) -> bool:
    try:
        async with asyncio.timeout(CANCEL_SECONDS), LimelightClient(valves, user) as client:
            while True:
                if await _try_cancel(client, followed, request):
                    return True
                await asyncio.sleep(CANCEL_RETRY_DELAY)
    except (TimeoutError, RequestRefused):
        return False


async def _try_cancel(client: LimelightClient, followed: LimelightClient, request: Json) -> bool:
    """Try once to cancel the run. Return False if the server cannot be reached, or if it may be starting the run.

    Raises RequestRefused."""
    try:
        run_id = followed.run_id or await _find_own_run_id(client, request)
        if not run_id:
            return not (followed.is_starting or followed.run_id)
        await client.request_json("POST", f"/runs/{run_id}/cancel", {"reason": "stopped in Open WebUI"}, 5)
    except ConnectionLost:
        return False
    except RequestRefused as refused:
        if refused.status != 404:  # a run that does not exist needs no cancelling
            raise
    return True


async def _find_own_run_id(client: LimelightClient, request: Json) -> str:
    """Return the id of the live run that the request started; "" if there is none, or if it waits in the queue.

    It is needed for an early Stop. Raises ConnectionLost and RequestRefused."""
    run = await find_live_run(client, request)
    return str(run["run_id"]) if run is not None and run.get("request_id") == request["request_id"] else ""
