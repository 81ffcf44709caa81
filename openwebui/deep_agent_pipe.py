"""
title: Deep Agent Pipe
author: Limelight
version: 0.1.0
license: Apache-2.0
description: Shows everything an agent does while it does it: tools, arguments, results, sub-agents, plans, approvals.
"""

# To install this file, paste it under Admin Panel, Functions, or run `limelight openwebui install`.
# `make pipe` generates it from the modules in openwebui/parts; edit those. Its sections:
#
#   valves            The settings of the pipe: the valves of the administrator and of each user.
#   frames            Parses the server's event stream, in the format `typed`, into frames, and reads their JSON values.
#   text_format       Shortens texts, and escapes characters that Open WebUI would render as Markdown, HTML or formulas.
#   server_client     The HTTP client for the Limelight server. All requests of the pipe go through it.
#   run_stream        Starts a run on the server, yields its frames even if connections are lost, and cancels it.
#   run_state         The state of a run, built from its frames: tool calls, sub-agents and token usage.
#   request           Converts a request of Open WebUI to a request for the server: agent, session and conversation.
#   downloads         Downloads the data that frames link to: complete values instead of previews, images and files.
#   output_items      The output items of a chat message, and the chunks that update them in Open WebUI.
#   native_display    The display `native`: a live row for each tool call and sub-agent, between texts and reasoning.
#   collapse_display  The displays `collapse` and `plain`: a block with all steps and the answer, or only the answer.
#   details_display   The display `details`, for Open WebUI before 0.8: text with a block for each finished call.
#   status_line       The status line above the text of an answer, and the task list above the message field.
#   citations         The sources that Open WebUI lists below an answer: tool results, and sources that the agent cites.
#   answers           Turns the JSON Schema of an answer into the fields of dialogs, and typed texts into values.
#   approvals         Asks the user in the chat for decisions and answers, and sends them to the server.
#   run_presenter     Presents one run: passes each frame to the display, the status line, citations and approvals.
#   turn              One turn of a chat: follows a run to its end, and sends its chunks and events to Open WebUI.
#   pipe              The class that Open WebUI loads: lists agents as models, runs turns, and answers internal tasks.

import asyncio
import base64
import contextlib
import functools
import hashlib
import html
import json
import logging
import os
import re
import ssl
import sys
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator
from typing import Any, Literal, NamedTuple, Protocol, cast
from urllib.parse import quote, unquote, urlsplit

import httpx
from pydantic import BaseModel, Field, field_validator

# --- valves -----------------------------------------------------------------------------------------------------------
# The settings of the pipe: the valves of the administrator and of each user.


class Valves(BaseModel):
    DEEP_AGENT_URL: str = Field(
        "http://localhost:8000", description="Address of the Limelight server, as Open WebUI's server reaches it."
    )
    API_KEY: str = Field(
        "",
        description="The server's API key. With it, each user of Open WebUI has separate sessions.",
        json_schema_extra={"input": {"type": "password"}},
    )
    DISPLAY: Literal["native", "collapse", "details", "plain"] = Field(
        "native",
        description="`native`: a live row for each tool. `collapse`: one block with all steps. "
        "`details`: a block for each finished tool, for Open WebUI before 0.8. `plain`: only the answer.",
    )
    SHOW_TOOL_CITATIONS: bool = Field(True, description="List tool results as sources below the answer.")
    SHOW_SUBAGENT_STATUS: bool = Field(True, description="Show the work of sub-agents in the status line.")
    REQUEST_TIMEOUT: int = Field(
        300, gt=0, description="Seconds without a byte after which the connection counts as lost."
    )
    RECONNECT_SECONDS: int = Field(120, ge=0, description="How many seconds the pipe tries to reconnect.")
    PUBLIC_URL: str = Field(
        "", description="Address of the server as a browser reaches it, for links to files and to very long results."
    )

    @field_validator("DEEP_AGENT_URL", "API_KEY", "PUBLIC_URL")
    @classmethod
    def _strip(cls, value: str) -> str:
        """Remove spaces and line breaks around a value, which pasting may add."""
        return value.strip()


class UserValves(BaseModel):
    DISPLAY: Literal["default", "native", "collapse", "details", "plain"] = Field(
        "default", description="How an agent's work is shown; `default` is what the administrator chose."
    )
    TOOL_CITATIONS: Literal["default", "show", "hide"] = Field(
        "default", description="Tool results as sources below the answer."
    )
    SUBAGENT_STATUS: Literal["default", "show", "hide"] = Field(
        "default", description="The work of sub-agents in the status line."
    )


class DisplayOptions(NamedTuple):
    """The display settings for one user: the user's valves override the administrator's."""

    display: str
    tool_citations: bool
    subagent_status: bool

    @classmethod
    def resolve(cls, valves: Valves, user_valves: Any) -> "DisplayOptions":
        def choose(name: str, default: Any) -> Any:
            value = getattr(user_valves, name, "default")
            return default if value == "default" else {"show": True, "hide": False}.get(value, value)

        return cls(
            choose("DISPLAY", valves.DISPLAY),
            choose("TOOL_CITATIONS", valves.SHOW_TOOL_CITATIONS),
            choose("SUBAGENT_STATUS", valves.SHOW_SUBAGENT_STATUS),
        )


# --- frames -----------------------------------------------------------------------------------------------------------
# Parses the server's event stream, in the format `typed`, into frames, and reads their JSON values.


Json = dict[str, Any]

SHOWN_EXTENSIONS = frozenset({"error", "cancelled", "approval"})
"""Later additions to the frame types that the pipe shows. For clients that do not know them, the server repeats their
content in frames of older types, which the pipe skips (`is_repeated`)."""


def as_text(value: Any) -> str:
    """Return a text unchanged, and any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def as_object(value: Any) -> Json:
    """Return a JSON object unchanged, and an empty one for any other value."""
    return cast(Json, value) if isinstance(value, dict) else {}


def as_objects(value: Any) -> list[Json]:
    """Return a list with `as_object` applied to each item, and an empty list for any other value."""
    return [as_object(item) for item in cast(list[Any], value)] if isinstance(value, list) else []


class Frame(NamedTuple):
    """A frame of the typed stream. Frames whose type begins with an underscore are created by the pipe."""

    type: str
    data: Json
    cursor: str = ""

    def text(self, key: str) -> str:
        """Return the value of a key as text; "" if it is missing."""
        value = self.data.get(key)
        return "" if value is None else as_text(value)

    def number(self, key: str) -> int:
        """Return the value of a key; 0 if it is missing or not an integer."""
        value = self.data.get(key)
        return value if isinstance(value, int) else 0

    @property
    def is_main_agent(self) -> bool:
        return not self.data.get("agent_depth") and not self.data.get("agent_id")

    @property
    def is_repeated(self) -> bool:
        """Whether this frame only repeats, for older clients, an error, a cancellation or an approval."""
        return self.text("fallback_for") in SHOWN_EXTENSIONS


DATA_RECEIVED = Frame("_data_received", {})
"""Marker that the server has sent bytes, with or without a frame in them. An idle server sends heartbeats."""


async def parse_frames(chunks: AsyncIterator[bytes]) -> AsyncIterator[Frame]:
    """Parse server-sent events into frames, with `DATA_RECEIVED` before the frames of each chunk.

    Only LF ends a line: JSON may contain the other line separators of Unicode."""
    rest, cursor = b"", ""
    async for chunk in chunks:
        if chunk:
            yield DATA_RECEIVED
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.startswith(b"id:"):
                cursor = line[3:].strip().decode("ascii", errors="ignore")
            elif line.startswith(b"data:"):
                with contextlib.suppress(ValueError, RecursionError):
                    payload = as_object(json.loads(line[5:]))
                    yield Frame(str(payload.get("type", "")), as_object(payload.get("data")), cursor)


# --- text_format ------------------------------------------------------------------------------------------------------
# Shortens texts, and escapes characters that Open WebUI would render as Markdown, HTML or formulas.


PREVIEW_CHARS = 200
LABEL_CHARS = 60
CODE_LINE_CHARS = 100

ZERO_WIDTH_SPACE = "\u200b"
MARKUP = re.compile(r"(?<=\\)(?=[(\[a-z])|(?<=\])(?=[(\[:])|(?<=\[)(?=[\d^])|(?<=<)(?=\S)|(?<=\{)(?=\{)")
"""Matches the positions at which a zero-width space breaks markup: formulas, links, images, citation marks, footnotes,
tags, mentions, and template variables of Open WebUI."""
MARKDOWN = re.compile(r"[\\`*~$]|(?<![^\W_])_|_(?![^\W_])")


def break_markup(text: str) -> str:
    """Insert zero-width spaces into a text, so that no link, image, tag or formula in it is recognised."""
    return MARKUP.sub(ZERO_WIDTH_SPACE, text)


def escape_markdown(line: str) -> str:
    """Escape Markdown inside of a line. Characters that are special only at its beginning are left to the caller."""
    return MARKDOWN.sub(lambda match: f"\\{match[0]}", break_markup(line))


def escape_line(text: str) -> str:
    """Turn a text into one line that a `<details>` block shows literally.

    Backslashes cannot escape links and formulas, because `\\[` begins a formula. Entities cannot either, because Open
    WebUI decodes the block once and then shows them literally.
    """
    return html.escape(escape_markdown(" ".join(text.split())), quote=False)


def literal_markdown(text: str) -> str:
    """Return Markdown that shows a text literally: as code, or as wrapped text if it has long lines and no indents."""
    lines = text.split("\n")
    if max(map(len, lines)) > CODE_LINE_CHARS and not any(line[:1].isspace() for line in lines):
        return "  \n".join(f"{ZERO_WIDTH_SPACE}{escape_markdown(line)}" for line in lines)
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def result_text(text: str) -> str:
    """Return the output of a tool call, or a note if it is blank."""
    return text if text.strip() else "✓ completed"


def preview(text: str) -> str:
    text = text.strip()
    return text if len(text) <= PREVIEW_CHARS else text[:PREVIEW_CHARS] + "..."


def shorten(text: str, limit: int = LABEL_CHARS) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def tool_count(count: int) -> str:
    return "1 tool" if count == 1 else f"{count} tools"


# --- server_client ----------------------------------------------------------------------------------------------------
# The HTTP client for the Limelight server. All requests of the pipe go through it.


TRANSIENT_STATUSES = (502, 503, 504)
"""Status codes that a proxy returns while the server behind it restarts."""


class RequestRefused(Exception):
    """The error for a response with an error status."""

    def __init__(self, status: int, problem: Json) -> None:
        super().__init__(str(problem.get("detail") or problem.get("title") or f"status {status}"))
        self.status = status
        self.code = str(problem.get("code", ""))


class ConnectionLost(Exception):
    """The error for a server that cannot be reached or is not Limelight. Its text is shown in the chat."""


class LimelightClient:
    """Sends requests for one user during one call of the pipe. `run_id` is the id of the run, "" until it is known.

    `is_starting` is True while the request that starts the run has no response, so a run without a known id may exist.
    `is_stopping` is True after Stop: no further request may start a run."""

    def __init__(self, valves: Valves, user: Json) -> None:
        self.url = valves.DEEP_AGENT_URL.rstrip("/")
        self.run_id = ""
        self.is_starting = False
        self.is_stopping = False
        self.command_user = f" --user {user.get('id') or ''}" if valves.API_KEY else ""
        """The option by which a `limelight` command acts for this user."""
        self._valves = valves
        self._user = user
        self._http: httpx.AsyncClient | None = None

    async def __aenter__(self) -> "LimelightClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._http is not None:
            await self._http.aclose()

    async def request_json(self, method: str, path: str, body: Json | None = None, seconds: float = 10) -> Any:
        """Send a request and return the JSON of the response. Raises RequestRefused and ConnectionLost."""
        http = await self._connect()
        try:
            response = await http.request(method, f"{self.url}{path}", timeout=seconds, **encode_request(body))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ConnectionLost(f"{self.url} cannot be reached ({error_reason(error)})") from error
        if response.status_code >= 400:
            refused = RequestRefused(response.status_code, parse_problem(response.content))
            if refused.status in TRANSIENT_STATUSES:
                raise ConnectionLost(f"{self.url} cannot be reached ({refused})")
            raise refused
        try:
            return response.json()
        except ValueError as error:
            raise self._not_limelight(response) from error

    async def download(self, path: str, limit: int) -> bytes | None:
        """Download a resource of the server. Return its body, None if it exceeds the limit or the request fails."""
        body = bytearray()
        try:
            http = await self._connect()
            async with http.stream("GET", join_url(self.url, path), timeout=30) as response:
                if response.status_code != 200:
                    return None
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > limit:
                        return None
        except (httpx.HTTPError, httpx.InvalidURL, ConnectionLost):
            return None
        return bytes(body)

    async def download_object(self, path: str, limit: int) -> Json:
        """Download a JSON object. Return an empty one if it exceeds the limit or the request fails."""
        try:
            return as_object(json.loads(await self.download(path, limit) or b"{}"))
        except ValueError:
            return {}

    @contextlib.asynccontextmanager
    async def open_stream(self, path: str, body: Json | None, cursor: str) -> AsyncGenerator[httpx.Response, None]:
        """Open an event stream with POST if there is a body, otherwise with GET. It begins after the cursor.

        Status 204 means that the run has ended and nothing follows the cursor.
        Raises RequestRefused, ConnectionLost and the errors of httpx."""
        method = "GET" if body is None else "POST"
        http = await self._connect()
        async with http.stream(method, f"{self.url}{path}", **encode_request(body, cursor)) as response:
            if response.status_code >= 400:
                raise RequestRefused(response.status_code, parse_problem(await response.aread()))
            media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if response.status_code != 204 and (response.status_code, media_type) != (200, "text/event-stream"):
                raise self._not_limelight(response)
            yield response

    def _not_limelight(self, response: httpx.Response) -> ConnectionLost:
        media_type = response.headers.get("content-type", "no content type")
        answer = f"{self.url} does not answer like a Limelight server (status {response.status_code}, {media_type})"
        return ConnectionLost(f"{answer}: is the valve DEEP_AGENT_URL right?")

    async def _connect(self) -> httpx.AsyncClient:
        """Return the HTTP client. It is created with the first request, so that invalid valves fail like a request."""
        if self._http is None:
            headers = request_headers(self._valves, self._user)
            try:
                verify = await ssl_verification(self.url)
            except OSError as error:
                raise ConnectionLost(f"SSL_CERT_FILE or SSL_CERT_DIR of Open WebUI cannot be read: {error}") from error
            timeout = httpx.Timeout(10, read=self._valves.REQUEST_TIMEOUT)
            # The proxies of the environment are for the internet; the Limelight server is on the local network.
            self._http = httpx.AsyncClient(headers=headers, timeout=timeout, verify=verify, trust_env=False)
        return self._http


def request_headers(valves: Valves, user: Json) -> dict[str, str]:
    """Return the headers with the API key and the user. Without a key, no user is sent, as the server would ignore it.

    Raises ConnectionLost for an invalid key; the text does not contain the key."""
    key = valves.API_KEY
    if not key:
        return {}
    if not (key.isascii() and key.isprintable()):
        raise ConnectionLost(
            "The valve API_KEY of the Deep Agent Pipe contains a character that no key can have, such as a line break, "
            "an accent or a typographic quotation mark: enter the key again."
        )
    return {
        "Authorization": f"Bearer {key}",
        "X-Limelight-User-Id": quote(str(user.get("id") or ""), safe="", errors="replace"),
        "X-Limelight-User-Name": quote(str(user.get("name") or ""), safe="", errors="replace"),
    }


def encode_request(body: Json | None, cursor: str = "") -> Json:
    """Return the content and headers of a request, as arguments for httpx.

    Lone surrogates, which JSON allows and UTF-8 does not, are replaced. Otherwise every later turn would fail."""
    headers = {"Last-Event-ID": cursor} if cursor else {}
    if body is None:
        return {"headers": headers}
    content = json.dumps(body, ensure_ascii=False).encode(errors="replace")
    return {"content": content, "headers": {**headers, "Content-Type": "application/json"}}


def parse_problem(body: bytes) -> Json:
    """Return the problem details of an error response; an empty object if it is not JSON, as from a proxy."""
    try:
        return as_object(json.loads(body))
    except ValueError:
        text = body[:300].decode(errors="replace").strip()
    return {} if text.startswith("<") else {"detail": text}


def join_url(base_url: str, path: str) -> str:
    """Return the URL of a path that the server has sent.

    If the base URL has a path, as in `https://host/limelight`, the server's paths may begin with it or not."""
    root = urlsplit(base_url).path.rstrip("/")
    return base_url + (path.removeprefix(root) if path.startswith(f"{root}/") else path)


async def ssl_verification(url: str) -> ssl.SSLContext | bool:
    """Return the `verify` argument for httpx. Raises OSError if the environment names unreadable certificates."""
    if not url.startswith("https:"):
        return False
    names = os.environ.get("SSL_CERT_FILE", ""), os.environ.get("SSL_CERT_DIR", "")
    return await asyncio.to_thread(load_certificates, *names)


@functools.cache
def load_certificates(_file: str, _folder: str) -> ssl.SSLContext:
    """Load the certificates that the environment names, and cache them, because loading takes 0.1 s.

    The arguments are only cache keys: httpx reads the environment itself.
    """
    return httpx.create_ssl_context(verify=True, trust_env=True)


def error_reason(error: Exception) -> str:
    """Return a short description of a failed request. The text of a LocalProtocolError is replaced, as it may contain
    the key."""
    reasons = {"ConnectError": "no connection", "ConnectTimeout": "no answer", "ReadTimeout": "no data"}
    reasons["LocalProtocolError"] = "a valve contains a character that no request can have"
    return reasons.get(type(error).__name__, str(error) or type(error).__name__)


def error_message(error: Exception) -> str:
    """Return an error message for the chat: what failed, and how to fix it."""
    if isinstance(error, RequestRefused):
        if error.status == 401:
            return "The Limelight server refuses the key: set the valve API_KEY of the Deep Agent Pipe."
        if error.status == 403:
            return f"The Limelight server refuses this machine: {error}"
        if error.status == 413:
            return (
                "This chat is too long for the Limelight server: start a new one, or send less at once. An "
                "administrator can raise LIMELIGHT_BODY_BYTES there, and the limit of a proxy in front of it."
            )
        return f"The Limelight server says: {error}"
    return str(error)


# --- run_stream -------------------------------------------------------------------------------------------------------
# Starts a run on the server, yields its frames even if connections are lost, and cancels it.


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


# --- run_state --------------------------------------------------------------------------------------------------------
# The state of a run, built from its frames: tool calls, sub-agents and token usage.


OUTPUT_CHARS = 50_000
"""Number of characters that are stored of the beginning of a tool's output, and of its end."""
OUTPUT_LINE_CHARS = 200


class CallKey(NamedTuple):
    """The id of a call's output item. It contains the call's original name and id, which the next turn needs."""

    run_id: str
    depth: int
    name: str
    tool_id: str

    def __str__(self) -> str:
        parts = (self.run_id, str(self.depth), self.name, self.tool_id)
        return ".".join(quote(part, safe="", errors="replace").replace(".", "%2E") for part in parts)

    @classmethod
    def parse(cls, text: str) -> "CallKey | None":
        parts = [unquote(part) for part in text.split(".")]
        return cls(parts[0], int(parts[1]), parts[2], parts[3]) if len(parts) == 4 and parts[1].isdecimal() else None


class ToolOutput:
    """The output of a tool, in bounded memory: its beginning, its end, and its last line."""

    def __init__(self) -> None:
        self.last_line = ""
        self._open_line = ""
        self._head: list[str] = []
        self._head_room = OUTPUT_CHARS
        self._tail: list[str] = []
        self._tail_chars = 0
        self._omitted = 0

    def add(self, text: str) -> None:
        self._read_lines(text)
        if self._head_room:
            self._head.append(text[: self._head_room])
        rest = text[self._head_room :]
        self._head_room -= len(text) - len(rest)
        self._tail.append(rest)
        self._tail_chars += len(rest)
        if self._tail_chars > 2 * OUTPUT_CHARS:
            self._trim_tail()

    @property
    def text(self) -> str:
        """Return the complete output, or its beginning and end with a note between them."""
        self._trim_tail()
        note = f"\n… ({self._omitted:,} characters are left out here)\n" if self._omitted else ""
        return f"{''.join(self._head)}{note}{''.join(self._tail)}"

    def is_in(self, result: str) -> bool:
        """Whether the text of a result contains this output."""
        self._trim_tail()
        head, tail = "".join(self._head), "".join(self._tail)
        ends = [head, tail] if self._omitted else [head + tail]
        return all(end.strip() in result for end in ends)

    def _read_lines(self, text: str) -> None:
        lines = (self._open_line + text).splitlines(keepends=True)
        self.last_line = next((line.strip() for line in reversed(lines) if line.strip()), self.last_line)[
            :OUTPUT_LINE_CHARS
        ]
        is_open = bool(lines) and lines[-1].splitlines() == lines[-1:]
        self._open_line = lines[-1][:OUTPUT_LINE_CHARS] if is_open else ""

    def _trim_tail(self) -> None:
        tail = "".join(self._tail)
        self._tail = [tail[-OUTPUT_CHARS:]]
        self._omitted += len(tail) - len(self._tail[0])
        self._tail_chars = len(self._tail[0])


class ToolCall:
    """The state of one tool call."""

    def __init__(self, frame: Frame, agent_path: str) -> None:
        self.tool_id = frame.text("tool_id")
        self.name = frame.text("name") or "unknown"
        self.agent_id = frame.text("agent_id")
        self.depth = frame.number("agent_depth")
        self.agent_path = agent_path
        self.args = frame.text("args")
        self.has_args = "args" in frame.data
        self.printed = ToolOutput()
        self.result = ""
        self.error: str | None = None
        self.outcome = ""
        self.result_seen = True
        self.done = False

    def finish(self, result: str, error: str | None, *, outcome: str = "", result_seen: bool = True) -> None:
        self.result, self.error, self.done = result, error, True
        self.outcome, self.result_seen = outcome, result_seen

    @property
    def failed(self) -> bool:
        """Whether the call has an error and was neither stopped nor rejected."""
        return self.error is not None and not self.outcome

    def key(self, run_id: str) -> str:
        return str(CallKey(run_id, self.depth, self.name, self.tool_id))

    @property
    def title(self) -> str:
        """The name of the tool, preceded by the sub-agent that called it."""
        if self.agent_path:
            return f"{self.agent_path} › {self.name}"
        return f"{'↳ ' * self.depth}{self.name}"

    @property
    def output(self) -> str:
        """The result, preceded by the printed output unless the result contains it."""
        if not self.printed.last_line or self.printed.is_in(self.result):
            return self.result
        return f"{self.printed.text.rstrip()}\n\n{self.result}".rstrip()

    @property
    def args_are_complete(self) -> bool:
        return self._parse_args() is not None

    @property
    def parameters(self) -> Json:
        """The arguments as a JSON object. Other arguments are put into an object as text."""
        args = self._parse_args()
        return {"arguments": self.args} if args is None else args

    def _parse_args(self) -> Json | None:
        if self.args.rstrip().endswith("}"):
            with contextlib.suppress(ValueError):
                return as_object(json.loads(self.args))
        return None if self.args.strip() else {}


def finished_title(call: ToolCall, title: str) -> str:
    """Return the title of a finished call. It marks a missing result, because Open WebUI shows a check mark."""
    return outcome_title(title, call.outcome) if call.result_seen else f"{title} · no result seen"


def outcome_title(title: str, outcome: str) -> str:
    """Return the title of a call or sub-agent, which says if it was stopped or rejected."""
    return f"{title} · {outcome}" if outcome else title


class SubAgent:
    """The state of one sub-agent. `tool_id` is the call that started it, or ""."""

    def __init__(self, frame: Frame, parent_path: str) -> None:
        self.agent_id = frame.text("agent_id")
        self.parent_id = frame.text("parent_id")
        self.name = " · ".join(filter(None, (frame.text("name") or "sub-agent", frame.text("title"))))
        self.path = f"{parent_path} › {self.name}" if parent_path else self.name
        self.depth = frame.number("depth") or 1
        self.tool_id = frame.text("tool_id")
        self.call_count = 0
        self.text = ""
        self.error: str | None = None
        self.outcome = ""

    @property
    def failed(self) -> bool:
        """Whether the sub-agent has an error and was not stopped."""
        return self.error is not None and not self.outcome


class RunState:
    """The calls, sub-agents and token usage of a run. It must get each frame before the displays that read it."""

    def __init__(self) -> None:
        self.calls: dict[str, ToolCall] = {}
        self.agents: dict[str, SubAgent] = {}
        self.input_tokens = 0
        self.output_tokens = 0

    def feed(self, frame: Frame) -> None:
        match frame.type:
            case "tool_start":
                self._add_call(frame)
            case "tool_args" if (call := self.call(frame)) and not call.has_args:
                call.args += frame.text("content")
            case "tool_output" if call := self.call(frame):
                call.printed.add(frame.text("content"))
            case "tool_end":
                call = self.call(frame) or self._add_call(frame)
                result_seen = frame.data.get("result_seen") is not False
                error, outcome = frame.data.get("error"), frame.text("outcome")
                call.finish(frame.text("result"), error, outcome=outcome, result_seen=result_seen)
            case "approval" if (call := self.call(frame)) and frame.data.get("state") == "edit":
                call.args, call.has_args = frame.text("args"), True
            case "agent_start":
                parent = self.agents.get(frame.text("parent_id"))
                self.agents[frame.text("agent_id")] = SubAgent(frame, parent.path if parent else "")
            case "agent_end" if agent := self.agents.get(frame.text("agent_id")):
                agent.error, agent.outcome = frame.data.get("error"), frame.text("outcome")
            case "token" if agent := self.agents.get(frame.text("agent_id")):
                agent.text += frame.text("content")
            case "usage":
                self.input_tokens += frame.number("input_tokens")
                self.output_tokens += frame.number("output_tokens")
            case _:
                pass

    def call(self, frame: Frame) -> ToolCall | None:
        """Return the call that a frame belongs to, None if it is unknown."""
        return self.calls.get(frame.text("tool_id"))

    def agent_started_by(self, tool_id: str) -> SubAgent | None:
        """Return the sub-agent that a call has started, None without one."""
        return next((agent for agent in self.agents.values() if tool_id and agent.tool_id == tool_id), None)

    def ancestors(self, agent_id: str) -> list[str]:
        """Return the ids of a sub-agent and of all its parents, without the main agent."""
        agent_ids: list[str] = []
        while agent_id and agent_id not in agent_ids:
            agent_ids.append(agent_id)
            agent = self.agents.get(agent_id)
            agent_id = agent.parent_id if agent else ""
        return agent_ids

    def _add_call(self, frame: Frame) -> ToolCall:
        agent = self.agents.get(frame.text("agent_id"))
        call = self.calls[frame.text("tool_id")] = ToolCall(frame, agent.path if agent else "")
        if agent is not None:
            agent.call_count += 1
        return call


# --- request ----------------------------------------------------------------------------------------------------------
# Converts a request of Open WebUI to a request for the server: agent, session and conversation.


DEFAULT_MODEL = "default"
"""The model id of the server's default agent."""
MODEL_OF_AGENT_NAMED_DEFAULT = "_default"
"""The model id of an agent that is named `default`. No agent has this name, as names begin with a letter or digit."""
SESSION_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
CONTINUE: Json = {"role": "user", "content": "Continue."}

MAX_CONVERSATION_BYTES = 8_000_000
"""Size to which a conversation is reduced, below the server's default limit of 10 MiB. Open WebUI sends the complete
conversation with each turn."""
OLD_RESULT_CHARS = 4_000
TRUNCATION_NOTE: Json = {"role": "system", "content": "The conversation is too long: its beginning was left out."}

PIPE_BLOCK = re.compile(
    r'<details(?: type="(?:tool_calls|reasoning)"[^>]*)?>\n<summary>'
    r"(?:🔍 Execution Steps \(\d+ tools?\)|Tool Executed|Thought for \d+ seconds)</summary>.*?</details>\n*",
    re.DOTALL,
)
"""Matches a block that a display of the pipe has added to a text."""


def build_request(body: Json, user: Json, metadata: Json) -> Json:
    messages = separate_context(as_objects(body.get("messages")), metadata)
    messages = remove_pipe_output(add_continue(messages, metadata))
    request: Json = {"messages": truncate_conversation(messages), "stream": True}
    if agent := agent_name(str(body.get("model", ""))):
        request["agent"] = agent
    if session := session_id(user, metadata):
        request["chat_id"] = session
    # The request id begins with the question's id, so that runs of several models for one question are recognised.
    question_id = metadata.get("user_message_id") or metadata.get("message_id") or ""
    request["request_id"] = f"{question_id}.{uuid.uuid4().hex}"[-200:]
    return request


def model_id(agent: str) -> str:
    """Return the id of an agent's model in Open WebUI."""
    return MODEL_OF_AGENT_NAMED_DEFAULT if agent == DEFAULT_MODEL else agent


def agent_name(model: str) -> str:
    """Return the agent of a model id, to which Open WebUI has added the function's id; "" for the default agent."""
    chosen = model.partition(".")[2]
    return {DEFAULT_MODEL: "", MODEL_OF_AGENT_NAMED_DEFAULT: DEFAULT_MODEL}.get(chosen, chosen)


def session_id(user: Json, metadata: Json) -> str:
    """Return the id of the server's session for this chat and user; "" if there is no chat."""
    user_id, chat_id = str(user.get("id") or "user"), str(metadata.get("chat_id") or "")
    if not chat_id:
        return ""
    if chat_id.startswith("channel:"):  # mentions in a channel are independent and may be concurrent
        chat_id = f"{chat_id}.{metadata.get('message_id') or uuid.uuid4().hex}"
    readable = f"{user_id}.{chat_id}"
    if SESSION_ID.fullmatch(readable) and "." not in user_id:
        return readable
    # A hash, because replacing invalid characters could give two chats the same id.
    return hashlib.sha256(f"{user_id}\0{chat_id}".encode(errors="replace")).hexdigest()


def message_text(content: Any) -> str:
    """Return the text of a message's content, without its images. The content is a text or a list of parts."""
    parts = [part.get("text") for part in as_objects(content)] if isinstance(content, list) else [content]
    return "\n".join(part for part in parts if isinstance(part, str))


def separate_context(messages: list[Json], metadata: Json) -> list[Json]:
    """Move the passages that Open WebUI adds to the question, for files and knowledge, to a system message.

    With the next turn Open WebUI sends the question without them. An agent whose memory contains another question would
    lose that memory."""
    question = message_text(as_object(metadata.get("user_message")).get("content"))
    positions = [index for index, message in enumerate(messages) if message.get("role") == "user"]
    if not question.strip() or not positions:
        return messages
    message, before, after = messages[positions[-1]], messages[: positions[-1]], messages[positions[-1] + 1 :]
    text = message_text(message.get("content"))
    if text.strip() == question.strip() or question.strip() not in text:
        return messages
    context: Json = {"role": "system", "content": text.strip().removesuffix(question.strip()).strip()}
    return [*before, context, {**message, "content": _replace_text(message.get("content"), question)}, *after]


def _replace_text(content: Any, text: str) -> Any:
    """Return a message's content with another text and the same images."""
    if not isinstance(content, list):
        return text
    return [{"type": "text", "text": text}, *(part for part in as_objects(content) if part.get("type") != "text")]


def is_tool_round(messages: list[Json], metadata: Json) -> bool:
    """Whether Open WebUI calls the pipe again only because of a tool result. An answer would cause an endless loop."""
    return not messages or (_last_role(messages) == "tool" and not metadata.get("assistant_message_id"))


def add_continue(messages: list[Json], metadata: Json) -> list[Json]:
    """Add a question to a request of "Continue response", which has none. Without it the agent would start again."""
    is_continued = metadata.get("assistant_message_id") and _last_role(messages) != "user"
    return [*messages, CONTINUE] if is_continued or _last_role(messages) == "assistant" else messages


def _last_role(messages: list[Json]) -> str:
    return str(messages[-1].get("role") or "") if messages else ""


def remove_pipe_output(messages: list[Json]) -> list[Json]:
    """Remove blocks, labels and sub-agent calls that the pipe has added, and all calls that are not from the pipe."""
    cleaned: list[Json] = []
    for message in messages:
        kept = {key: message[key] for key in ("role", "content", "name") if message.get(key) is not None}
        kept.setdefault("content", "")
        if message.get("role") == "assistant":
            if isinstance(kept["content"], str):
                kept["content"] = PIPE_BLOCK.sub("", kept["content"])
            calls = [call for item in as_objects(message.get("tool_calls")) if (call := _original_call(item))]
            if calls:
                kept["tool_calls"] = calls
            elif not kept["content"]:
                continue
        elif message.get("role") == "tool":
            key = CallKey.parse(str(message.get("tool_call_id", "")))
            if key is None or key.depth:
                continue
            kept["tool_call_id"] = key.tool_id
        cleaned.append(kept)
    return cleaned


def _original_call(call: Json) -> Json | None:
    """Return a tool call with the name and id that the main agent gave it; None for calls of sub-agents or others."""
    key = CallKey.parse(str(call.get("id", "")))
    if key is None or key.depth:
        return None
    arguments = str(as_object(call.get("function")).get("arguments") or "{}")
    return {"id": key.tool_id, "type": "function", "function": {"name": key.name, "arguments": arguments}}


def truncate_conversation(messages: list[Json]) -> list[Json]:
    """Reduce a conversation to MAX_CONVERSATION_BYTES: shorten old results, then remove old images, then old turns."""
    excess = sum(map(_size, messages)) - MAX_CONVERSATION_BYTES
    reduced = list(messages)
    question = max((index for index, message in enumerate(messages) if message.get("role") == "user"), default=0)
    for reduce in (_shorten_result, _remove_images):
        excess = _reduce_oldest(reduced, question, excess, reduce)
    return reduced if excess <= 0 else _remove_oldest_turns(reduced, question, excess)


def _reduce_oldest(messages: list[Json], end: int, excess: int, reduce: Callable[[Json], Json]) -> int:
    """Reduce messages before `end`, oldest first, until `excess` bytes are saved. Return the remaining excess."""
    for index, message in enumerate(messages[:end]):
        if excess <= 0:
            break
        messages[index] = reduce(message)
        if messages[index] is not message:
            excess -= _size(message) - _size(messages[index])
    return excess


def _shorten_result(message: Json) -> Json:
    content = message.get("content")
    if message.get("role") != "tool" or not isinstance(content, str) or len(content) <= OLD_RESULT_CHARS:
        return message
    return {**message, "content": f"{content[:OLD_RESULT_CHARS]}\n\n… (cut: {len(content):,} characters in all)"}


def _remove_images(message: Json) -> Json:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    parts = as_objects(content)
    texts = [part for part in parts if part.get("type") == "text"]
    note: Json = {"type": "text", "text": "(an image that is not sent any more)"}
    return message if len(texts) == len(parts) else {**message, "content": [*texts, note]}


def _remove_oldest_turns(messages: list[Json], question: int, excess: int) -> list[Json]:
    """Remove the oldest turns, but not system messages. Turns are removed completely, because the server refuses a
    tool result without its call."""
    start = 0
    while excess > 0 and start < question:
        excess -= _size(messages[start])
        start += 1
    while start < question and messages[start].get("role") != "user":
        start += 1
    system = [message for message in messages[:start] if message.get("role") == "system"]
    return [*system, TRUNCATION_NOTE, *messages[start:]] if start else messages


def _size(message: Json) -> int:
    return len(json.dumps(message)) + 2


# --- downloads --------------------------------------------------------------------------------------------------------
# Downloads the data that frames link to: complete values instead of previews, images and files.


MAX_VALUE_BYTES = 100_000
MAX_ANSWER_BYTES = 1_000_000
"""Size limit of an answer. It is higher than the limit of a tool result, because the user has asked for the answer."""
MAX_IMAGE_BYTES = 1_000_000
MAX_MESSAGE_IMAGE_BYTES = 4_000_000
"""Size limit of all images of a message together. Open WebUI stores them in the chat, and sends them whenever the chat
is opened."""
SVG = "image/svg+xml"
TEXT_TYPES = frozenset({"application/json", "application/x-yaml", "application/xml", "application/javascript", SVG})


class Downloader:
    """Replaces previews in frames by downloaded values. A value that is too large stays a preview with a link to it."""

    def __init__(self, client: LimelightClient, public_url: str) -> None:
        self._client = client
        self._public_url = public_url.rstrip("/")
        self._image_bytes_left = MAX_MESSAGE_IMAGE_BYTES

    async def complete(self, frame: Frame) -> Frame:
        is_truncated = bool(frame.data.get("truncated"))
        match frame.type:
            case "tool_end" if is_truncated:
                return await self._complete_text(frame, "result", MAX_VALUE_BYTES)
            case "token" if is_truncated:
                return await self._complete_text(frame, "content", MAX_ANSWER_BYTES)
            case "tool_start" if is_truncated:
                return await self._complete_args(frame, "args", "args")
            case "tool_args" if is_truncated:
                return await self._complete_args(frame, "content", "args")
            case "approval" if is_truncated and frame.data.get("state") == "edit":
                return await self._complete_args(frame, "args", "edited_args")
            case "artifact":
                return await self._load_artifact(frame)
            case "gap":
                count = frame.number("to") - frame.number("from") + 1
                return Frame("status", {"description": f"{count:,} events are no longer kept"}, frame.cursor)
            case _:
                return frame

    async def _complete_text(self, frame: Frame, key: str, limit: int) -> Frame:
        path, size = frame.text("result_url"), frame.number("size")
        content = await self._client.download(f"{path}?raw=1", limit) if size <= limit else None
        note = self._link_note(path, size, "?raw=1")
        text = f"{frame.text(key)}\n\n{note}" if content is None else content.decode(errors="replace")
        return frame._replace(data={**frame.data, key: text})

    async def _complete_args(self, frame: Frame, key: str, field: str) -> Frame:
        """Return the frame with complete arguments, or with an object that contains a preview and a link."""
        path, size = frame.text("result_url"), frame.number("size")
        # The response contains more than the arguments, such as the result of the same call.
        response = await self._client.download_object(path, 10 * MAX_VALUE_BYTES) if size <= MAX_VALUE_BYTES else {}
        truncated = {"arguments": frame.text(key), "cut": self._link_note(path, size)}
        return frame._replace(data={**frame.data, key: response.get(field) or truncated})

    def _link_note(self, path: str, size: int, query: str = "") -> str:
        where = join_url(self._public_url, path + query) if self._public_url else f"{path} on the Limelight server"
        length = f"{size:,} bytes in all; " if size else ""
        return f"… ({length}the whole is at {where})"

    async def _load_artifact(self, frame: Frame) -> Frame:
        """Return the frame of a file: `_image` with a data URL for a small image, or `_file` with text or a link."""
        media_type = frame.text("media_type").partition(";")[0].strip().lower()
        path, size = frame.text("url"), frame.number("size")
        file: dict[str, Any] = {"tool_id": frame.text("tool_id"), "name": frame.text("name") or "file", "size": size}
        if media_type.startswith("image/") and media_type != SVG and (url := await self._load_image(path, size)):
            return Frame("_image", {**file, "url": url})
        content = await self._load_text(path, media_type) if size <= MAX_VALUE_BYTES else None
        if content is None and not self._public_url:  # no address that browsers can surely reach
            media_type = "text/plain"
            content = f"{file['name']}: {size:,} bytes, at {path} on the Limelight server"
        link = join_url(self._public_url, path)
        return Frame("_file", {**file, "url": link, "media_type": media_type, "content": content})

    async def _load_image(self, path: str, size: int) -> str | None:
        """Download an image and return its data URL; None if it is too large or not an image."""
        limit = min(MAX_IMAGE_BYTES, self._image_bytes_left)
        content = await self._client.download(path, limit) if size <= limit else None
        media_type = image_type(content) if content else None
        if content is None or media_type is None:
            return None
        self._image_bytes_left -= len(content)
        return f"data:{media_type};base64,{base64.b64encode(content).decode()}"

    async def _load_text(self, path: str, media_type: str) -> str | None:
        """Download a text file and return its content, which Open WebUI shows in a window; None for other files."""
        if not media_type.startswith("text/") and media_type not in TEXT_TYPES:
            return None
        content = await self._client.download(path, MAX_VALUE_BYTES)
        return None if content is None else content.decode(errors="replace")


def image_type(data: bytes) -> str | None:
    """Return the media type of an image by its first bytes, None if it is unknown. A tool may declare a wrong type."""
    signatures = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF87a": "gif", b"GIF89a": "gif"}
    found = next((name for signature, name in signatures.items() if data.startswith(signature)), None)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        found = "webp"
    elif data[4:12] in (b"ftypavif", b"ftypavis"):
        found = "avif"
    return f"image/{found}" if found else None


class FileList:
    """The list of files above the text of a message. It is sent once, because Open WebUI appends each list it gets."""

    def __init__(self, state: RunState, *, images_in_rows: bool) -> None:
        self._state = state
        self._images_in_rows = images_in_rows
        self._files: list[Json] = []

    def feed(self, frame: Frame) -> None:
        if frame.type == "_image" and not (self._images_in_rows and self._state.call(frame)):
            self._files.append({"type": "image", "name": frame.text("name"), "url": frame.text("url")})
        elif frame.type == "_file":
            self._files.append(_text_file(frame) if frame.data.get("content") is not None else _linked_file(frame))

    def final_event(self) -> Json | None:
        return {"type": "files", "data": {"files": self._files}} if self._files else None


def _text_file(frame: Frame) -> Json:
    """Return the entry of a file whose text Open WebUI shows on a click."""
    meta = {"name": frame.text("name"), "content_type": frame.text("media_type"), "size": frame.number("size")}
    file = {"filename": frame.text("name"), "data": {"content": frame.text("content")}, "meta": meta}
    return {"type": "file", "name": frame.text("name"), "size": frame.number("size"), "file": file}


def _linked_file(frame: Frame) -> Json:
    """Return the entry of a file that opens its URL on a click. Its type is not `file`, whose URL would be changed."""
    return {"type": "doc", "name": frame.text("name"), "size": frame.number("size"), "url": frame.text("url")}


# --- output_items -----------------------------------------------------------------------------------------------------
# The output items of a chat message, and the chunks that update them in Open WebUI.
#
# Items have the format of OpenAI's Responses API. Open WebUI replaces an item that is sent again.


Chunk = Json | str
"""A value that a pipe may yield: an event of the Responses API, or text."""

DELTA_TYPES = {
    "message": "response.output_text.delta",
    "reasoning": "response.reasoning_text.delta",
    "function_call": "response.function_call_arguments.delta",
}


class OutputItems:
    """The output items of a message, in order. A changed item is sent again completely, appended text as a delta."""

    def __init__(self) -> None:
        self._order: list[str] = []
        self._items: dict[str, Json] = {}
        self._changed: set[str] = set()
        self._deltas: dict[str, str] = {}

    def __contains__(self, item_id: str) -> bool:
        return item_id in self._items

    def __getitem__(self, item_id: str) -> Json:
        return self._items[item_id]

    def put(self, item: Json, *, after: str = "") -> None:
        """Add an item at the end or after another item. An existing item with the same id is replaced in place."""
        item_id: str = item["id"]
        if item_id not in self._items:
            self._order.insert(self._order.index(after) + 1 if after else len(self._order), item_id)
        elif self._items[item_id] == item:
            return
        self._items[item_id] = item
        self._changed.add(item_id)
        self._deltas.pop(item_id, None)

    def update(self, item_id: str, **fields: Any) -> None:
        self.put({**self._items[item_id], **fields})

    def append(self, item_id: str, delta: str) -> None:
        """Append to the text of an item: of a message or reasoning, or the arguments of a call."""
        item = self._items[item_id]
        if item["type"] == "function_call":
            self._items[item_id] = {**item, "arguments": item["arguments"] + delta}
        else:
            self._items[item_id] = {**item, "content": text_content(item_text(item) + delta)}
        if item_id not in self._changed:
            self._deltas[item_id] = self._deltas.get(item_id, "") + delta

    def flush(self) -> list[Chunk]:
        """Return the changes since the last call, ordered by item, so that each index is valid when applied."""
        chunks: list[Chunk] = []
        for index, item_id in enumerate(self._order):
            if item_id in self._changed:
                item = self._items[item_id]
                chunks.append({"type": "response.output_item.added", "output_index": index, "item": item})
            elif item_id in self._deltas:
                delta = {"item_id": item_id, "output_index": index, "delta": self._deltas[item_id]}
                chunks.append({"type": DELTA_TYPES[self._items[item_id]["type"]], "content_index": 0, **delta})
        self._changed.clear()
        self._deltas.clear()
        return chunks

    def add_title(self, item_id: str, answer: Frame) -> None:
        """Insert the title of a structured answer before its content, which may follow other text in the item."""
        title = answer.text("title")
        if title and item_id in self:
            text, content = item_text(self[item_id]), answer.data.get("content")
            if not isinstance(content, str):
                content = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
            before = text.removesuffix(content) if text.endswith(content) else ""
            self.update(item_id, content=text_content(f"{before}### {title}\n\n{text.removeprefix(before)}"))


def text_content(text: str) -> list[Json]:
    return [{"type": "output_text", "text": text}]


def item_text(item: Json) -> str:
    return "".join(part["text"] for part in item["content"])


def message_item(item_id: str, text: str, status: str = "in_progress") -> Json:
    content = text_content(text)
    return {"type": "message", "id": item_id, "status": status, "role": "assistant", "content": content}


# --- native_display ---------------------------------------------------------------------------------------------------
# The display `native`: a live row for each tool call and sub-agent, between texts and reasoning.


class MessageWriter:
    """Writes the texts and reasoning of the main agent. Each uninterrupted text is one item."""

    def __init__(self, items: OutputItems, run_id: Callable[[], str], clock: Callable[[], float]) -> None:
        self._items = items
        self._run_id = run_id
        self._clock = clock
        self._count = 0
        self._text_id = ""
        self._reasoning_id = ""
        self._reasoning_since = 0.0
        self.last_text_id = ""

    def add_text(self, text: str) -> None:
        self._finish_reasoning()
        if not self._text_id:
            text = text.lstrip("\n")  # only separates messages of a stream
            if not text:
                return
            self._text_id = self.last_text_id = self._new_id("m")
            self._items.put(message_item(self._text_id, ""))
        self._items.append(self._text_id, text)

    def add_reasoning(self, text: str) -> None:
        self._finish_text()
        if not self._reasoning_id:
            self._reasoning_id, self._reasoning_since = self._new_id("r"), self._clock()
            item: Json = {"type": "reasoning", "id": self._reasoning_id, "status": "in_progress", "summary": []}
            self._items.put({**item, "content": text_content("")})
        self._items.append(self._reasoning_id, text)

    def finish(self) -> None:
        self._finish_text()
        self._finish_reasoning()

    def _finish_text(self) -> None:
        if self._text_id:
            self._items.update(self._text_id, status="completed")
            self._text_id = ""

    def _finish_reasoning(self) -> None:
        if self._reasoning_id:
            seconds = round(self._clock() - self._reasoning_since)
            self._items.update(self._reasoning_id, status="completed", duration=seconds)
            self._reasoning_id = ""

    def _new_id(self, prefix: str) -> str:
        self._count += 1
        return f"{self._run_id()}.{prefix}{self._count}"


class NativeDisplay:
    """Turns frames into output items. A "row" is the item of a call or sub-agent, with the type `function_call`."""

    def __init__(self, state: RunState, run_id: Callable[[], str], clock: Callable[[], float]) -> None:
        self._state = state
        self._run_id = run_id
        self._items = OutputItems()
        self._messages = MessageWriter(self._items, run_id, clock)
        self._call_rows: dict[str, str] = {}
        self._agent_rows: dict[str, str] = {}
        """Item ids of the rows of sub-agents that no call has started, by agent id."""
        self._last_rows: dict[str, str] = {}
        """Item id of the last row of each agent and its sub-agents, by agent id."""
        self._images: dict[str, list[Json]] = {}
        self._calls_with_output: dict[str, ToolCall] = {}
        """Calls with output since the last flush. Their labels are set by the flush, because only it sends them."""

    def flush(self) -> list[Chunk]:
        for tool_id, call in self._calls_with_output.items():
            if call.printed.last_line:
                name = f"{call.title} · {shorten(call.printed.last_line)}"
                self._items.update(self._call_rows[tool_id], name=name, status="completed")
        self._calls_with_output.clear()
        return self._items.flush()

    def feed(self, frame: Frame) -> None:
        match frame.type:
            case "token" if frame.is_main_agent:
                self._messages.add_text(frame.text("content"))
            case "reasoning" if frame.is_main_agent:
                self._messages.add_reasoning(frame.text("content"))
            case "plan" if frame.is_main_agent and frame.data.get("text"):
                self._messages.add_reasoning(frame.text("text") + "\n\n")
            case "answer":
                self._items.add_title(self._messages.last_text_id, frame)
            case "tool_start" if call := self._state.call(frame):
                self._start_call(call)
            case "tool_args" | "tool_output" | "approval" | "_unanswered" if call := self._state.call(frame):
                self._update_call(call, frame)
            case "tool_end" if call := self._state.call(frame):
                self._finish_call(call)
            case "agent_start" | "agent_end" if agent := self._state.agents.get(frame.text("agent_id")):
                self._update_agent(agent, ended=frame.type == "agent_end")
            case "_image" if call := self._state.call(frame):
                self._add_image(call, frame.text("url"))
            case _:
                pass

    def close(self) -> None:
        self._messages.finish()
        for call in self._state.calls.values():
            if not call.done and call.tool_id in self._call_rows:
                call.finish("Error: interrupted", "interrupted")
                self._finish_call(call)
        for row in self._agent_rows.values():
            if f"{row}.out" not in self._items:
                self._items.update(row, status="failed")
                self._put_output(row, "Error: interrupted")

    def _start_call(self, call: ToolCall) -> None:
        if not call.depth:
            self._messages.finish()
        row = self._call_rows[call.tool_id] = call.key(self._run_id())
        item: Json = {"type": "function_call", "id": row, "call_id": row, "name": call.title, "arguments": call.args}
        item["status"] = "completed" if call.has_args else "in_progress"
        self._put_row(call.agent_id, item)
        agent = self._state.agents.get(call.agent_id)
        if agent is not None and (agent_row := self._row_of(agent)):
            self._items.update(agent_row, name=f"{agent.path} · {call.name} ({agent.call_count})")

    def _put_row(self, agent_id: str, item: Json) -> None:
        """Add a row of an agent after the last row of that agent and its sub-agents; for the main agent at the end."""
        previous = self._last_rows.get(agent_id, "")
        self._items.put(item, after=previous)
        for ancestor in self._state.ancestors(agent_id):
            if self._last_rows.get(ancestor, "") == previous:
                self._last_rows[ancestor] = item["id"]

    def _update_call(self, call: ToolCall, frame: Frame) -> None:
        row = self._call_rows[call.tool_id]
        self._calls_with_output.pop(call.tool_id, None)
        match frame.type:
            case "tool_args" if not call.has_args:
                self._items.append(row, frame.text("content"))
                if call.args_are_complete:
                    self._items.update(row, status="completed")
            case "tool_output":
                self._calls_with_output[call.tool_id] = call
            case "approval":
                is_waiting = frame.data.get("state") == "requested"
                name = f"{call.title} · waiting for approval" if is_waiting else call.title
                self._items.update(row, name=name, arguments=call.args, status="completed")
            case "_unanswered":
                self._items.update(row, name=f"{call.title} · {frame.text('instruction')}")
            case _:
                pass

    def _finish_call(self, call: ToolCall) -> None:
        if call.tool_id not in self._call_rows:  # the server has sent only the end of the call
            self._start_call(call)
        row = self._call_rows[call.tool_id]
        self._calls_with_output.pop(call.tool_id, None)
        agent = self._state.agent_started_by(call.tool_id)
        status = "failed" if call.failed else "completed"
        name = finished_title(call, _agent_title(agent) if agent else call.title)
        self._items.update(row, name=name, status=status)
        self._put_output(row, call.output)

    def _put_output(self, row: str, text: str) -> None:
        item: Json = {"type": "function_call_output", "id": f"{row}.out", "call_id": row, "status": "completed"}
        item["output"] = [{"type": "input_text", "text": result_text(text)}]
        if row in self._images:
            item["files"] = list(self._images[row])
        self._items.put(item, after=row)

    def _update_agent(self, agent: SubAgent, *, ended: bool) -> None:
        """Update the row of a sub-agent: the row of the call that started it, or a separate row without such a call."""
        row = self._row_of(agent)
        if row is None:
            row = str(CallKey(self._run_id(), agent.depth, agent.name, f"agent-{agent.agent_id}"))
            self._agent_rows[agent.agent_id] = row
            item: Json = {"type": "function_call", "id": row, "call_id": row, "name": "", "arguments": "{}"}
            self._put_row(agent.parent_id, item)
        self._last_rows.setdefault(agent.agent_id, row)
        name = outcome_title(_agent_title(agent), agent.outcome)
        self._items.update(row, name=name, status="failed" if agent.failed else "completed")
        if ended and agent.tool_id not in self._call_rows:
            self._put_output(row, agent.text if agent.error is None else f"Error: {agent.error}")

    def _row_of(self, agent: SubAgent) -> str | None:
        return self._call_rows.get(agent.tool_id) or self._agent_rows.get(agent.agent_id)

    def _add_image(self, call: ToolCall, url: str) -> None:
        row = self._call_rows[call.tool_id]
        self._images.setdefault(row, []).append({"type": "image", "url": url})
        if call.done:
            self._put_output(row, call.output)


def _agent_title(agent: SubAgent) -> str:
    return f"{agent.path} ({tool_count(agent.call_count)})" if agent.call_count else agent.path


# --- collapse_display -------------------------------------------------------------------------------------------------
# The displays `collapse` and `plain`: a block with all steps and the answer, or only the answer.


REDRAW_SECONDS = 0.5
REDRAW_CHARS_PER_SECOND = 200_000
"""Characters of the block that may be sent per second. Each redraw sends the complete block, so it limits redraws."""


class CollapseDisplay:
    """Turns frames into two output items: the block with the steps, unless `show_steps` is False, and the answer."""

    def __init__(
        self, state: RunState, run_id: Callable[[], str], clock: Callable[[], float], *, show_steps: bool
    ) -> None:
        self._state = state
        self._run_id = run_id
        self._clock = clock
        self._show_steps = show_steps
        self._items = OutputItems()
        self._steps: list[str] = []
        self._text = ""
        self._is_outdated = False
        self._next_redraw = 0.0

    def flush(self) -> list[Chunk]:
        if self._is_outdated and self._clock() >= self._next_redraw:
            self._redraw()
        return self._items.flush()

    def feed(self, frame: Frame) -> None:
        match frame.type:
            case "token" if frame.is_main_agent:
                self._add_text(frame.text("content"))
            case "tool_start" if call := self._state.call(frame):
                if not call.depth:
                    self._turn_text_into_step()
                self._schedule_redraw()
            case "tool_end" if call := self._state.call(frame):
                self._steps.append(tool_step(call, preview(result_text(call.output))))
                self._schedule_redraw()
            case "answer":
                self._items.add_title(self._answer_id, frame)
            case _:
                pass

    def close(self) -> None:
        for call in self._state.calls.values():
            if not call.done:
                call.finish("interrupted", "interrupted")
                self._steps.append(tool_step(call, call.output))
        self._redraw()
        if self._answer_id in self._items:
            self._items.update(self._answer_id, status="completed")

    def _add_text(self, text: str) -> None:
        text = text if self._text else text.lstrip("\n")
        if text:
            self._put_items()
            self._text += text
            self._items.append(self._answer_id, text)

    def _turn_text_into_step(self) -> None:
        """Move the current text into the block of steps, because text before a tool call is not the answer."""
        if self._text.strip():
            self._steps.append(f"**🤖 AI:** {html.escape(self._text.strip(), quote=False)}")
        if self._text:
            self._items.put(message_item(self._answer_id, ""))
        self._text = ""

    def _put_items(self) -> None:
        """Create the block and the answer, in this order, if they do not exist."""
        if self._answer_id not in self._items:
            if self._show_steps:
                self._items.put(message_item(self._block_id, "", "completed"))
            self._items.put(message_item(self._answer_id, ""))

    def _schedule_redraw(self) -> None:
        if self._show_steps:
            self._put_items()
            self._is_outdated = True

    def _redraw(self) -> None:
        """Write the block of steps, with running calls last. Without calls the block stays empty, and is not shown."""
        calls = self._state.calls.values()
        if calls and self._show_steps:
            self._put_items()
            steps = [*self._steps, *(tool_step(call, "⏳") for call in calls if not call.done)]
            block = steps_block(len(calls), steps)
            self._items.put(message_item(self._block_id, block, "completed"))
            self._next_redraw = self._clock() + max(REDRAW_SECONDS, len(block) / REDRAW_CHARS_PER_SECOND)
        self._is_outdated = False

    @property
    def _block_id(self) -> str:
        return f"{self._run_id()}.steps"

    @property
    def _answer_id(self) -> str:
        return f"{self._run_id()}.answer"


def tool_step(call: ToolCall, text: str) -> str:
    return f"**🔧 {escape_line(outcome_title(call.title, call.outcome))}:** {escape_line(text)}"


def steps_block(count: int, steps: list[str]) -> str:
    body = "\n\n".join(steps)
    return f"<details>\n<summary>🔍 Execution Steps ({tool_count(count)})</summary>\n\n{body}\n\n</details>\n\n"


# --- details_display --------------------------------------------------------------------------------------------------
# The display `details`, for Open WebUI before 0.8: text with a block for each finished call.


class DetailsDisplay:
    """Turns frames into text with a block for each finished call. Clients of Open WebUI's API get no `blocks`."""

    def __init__(self, state: RunState, clock: Callable[[], float], *, blocks: bool = True) -> None:
        self._state = state
        self._clock = clock
        self._blocks = blocks
        self._new_text = ""
        self._is_paragraph_start = True
        self._reasoning = ""
        self._reasoning_since = 0.0

    def flush(self) -> list[Chunk]:
        """Return the new text. Text that begins with "data:" is split: Open WebUI would take it for an event."""
        text, self._new_text = self._new_text, ""
        chunks = [text[:1], text[1:]] if text.startswith("data:") else [text]
        return [chunk for chunk in chunks if chunk]

    def feed(self, frame: Frame) -> None:
        match frame.type:
            case "token" if frame.is_main_agent:
                self._finish_reasoning()
                text = frame.text("content")
                self._add(text.lstrip("\n") if self._is_paragraph_start else text)
            case "reasoning" if frame.is_main_agent and self._blocks:
                self._reasoning_since = self._reasoning_since or self._clock()
                self._reasoning += frame.text("content")
            case "tool_start":
                self._finish_reasoning()
            case "tool_end" if (call := self._state.call(frame)) and self._blocks:
                self._add_block(tool_block(call))
            case _:
                pass

    def close(self) -> None:
        self._finish_reasoning()
        for call in self._state.calls.values():
            if not call.done:
                call.finish("Error: interrupted", "interrupted")
                if self._blocks:
                    self._add_block(tool_block(call))

    def _finish_reasoning(self) -> None:
        if self._reasoning.strip():
            seconds = round(self._clock() - self._reasoning_since)
            lines = self._reasoning.strip().splitlines()
            quoted = "\n".join(f"> {html.escape(line, quote=False)}" for line in lines)
            summary = f"<summary>Thought for {seconds} seconds</summary>"
            self._add_block(
                f'<details type="reasoning" done="true" duration="{seconds}">\n{summary}\n{quoted}\n</details>\n\n'
            )
        self._reasoning, self._reasoning_since = "", 0.0

    def _add_block(self, block: str) -> None:
        self._add(block if self._is_paragraph_start else f"\n\n{block}")

    def _add(self, text: str) -> None:
        if text:
            self._new_text += text
            self._is_paragraph_start = text.endswith("\n\n")


def tool_block(call: ToolCall) -> str:
    """Return the `<details>` block of a finished call. Its values are JSON, because each must be on one line."""
    name = finished_title(call, call.title)
    values = {"id": call.tool_id, "name": name, "arguments": json.dumps(call.parameters, ensure_ascii=False)}
    values["result"] = json.dumps(result_text(call.output), ensure_ascii=False)
    attributes = " ".join(f'{key}="{escape_attribute(value)}"' for key, value in values.items())
    return f'<details type="tool_calls" done="true" {attributes}>\n<summary>Tool Executed</summary>\n</details>\n\n'


def escape_attribute(value: str) -> str:
    """Escape an HTML attribute, including double braces, in which Open WebUI would replace template variables."""
    return html.escape(value, quote=True).replace("{{", "{&#123;")


# --- status_line ------------------------------------------------------------------------------------------------------
# The status line above the text of an answer, and the task list above the message field.


MAX_STATUSES_PER_BATCH = 5
"""Number of statuses in a batch above which only the last one is sent: a user could not read the others."""


class StatusLine:
    """Turns frames into events for the status line. The final event says how the run ended, and stops the animation."""

    def __init__(self, options: DisplayOptions) -> None:
        self._show_subagents = options.subagent_status
        self._last = ""
        self._before_reconnect = ""
        self._open_approvals: dict[str, str] = {}
        """The status of each open approval; "" for those of sub-agents whose status is hidden."""

    def feed(self, frame: Frame) -> list[Json]:
        text = self._status_text(frame)
        return [] if text in ("", self._last) else [self._event(text, done=False)]

    def final_event(self, text: str) -> Json:
        return self._event(text, done=True)

    def _event(self, text: str, *, done: bool) -> Json:
        self._last = text
        return {"type": "status", "data": {"description": text, "done": done}}

    def _status_text(self, frame: Frame) -> str:
        depth = frame.number("depth") or frame.number("agent_depth")
        if frame.type in ("approval", "_unanswered"):
            return self._approval_text(frame, depth)
        return self._indent(self._frame_text(frame), depth)

    def _indent(self, text: str, depth: int) -> str:
        if depth and not self._show_subagents:
            return ""
        return "↳ " * depth + text if text else ""

    def _approval_text(self, frame: Frame, depth: int) -> str:
        """Return the status text of an approval frame: an open approval, or else the decision."""
        approval_id, name, state = frame.text("approval_id"), frame.text("name"), frame.data.get("state")
        if state == "requested":
            self._open_approvals[approval_id] = self._indent(f"⏸ {name} is waiting for approval", depth)
            return self._open_approvals[approval_id]
        if frame.type == "_unanswered":
            if approval_id in self._open_approvals:  # it may have been decided since
                self._open_approvals[approval_id] = f"⏸ {name} · {frame.text('instruction')}"
            return self._open_approvals.get(approval_id, "")
        if not self._open_approvals.pop(approval_id, ""):
            return ""
        others = [text for text in self._open_approvals.values() if text]
        decision = f"🚫 {name} was rejected" if state == "reject" else f"🔧 {name}..."
        return others[-1] if others else "↳ " * depth + decision

    def _frame_text(self, frame: Frame) -> str:
        match frame.type:
            case "status":
                return frame.text("description")
            case "tool_start":
                return f"🔧 {frame.text('name') or 'unknown'}..."
            case "agent_start":
                title = f" · {frame.text('title')}" if frame.text("title") else ""
                return f"🤖 Sub-agent: {frame.text('name')}{title}..."
            case "plan":
                return plan_text(as_objects(frame.data.get("items")))
            case "_queued":
                return "Waiting for the answer of the other model..."
            case "_reconnecting":
                self._before_reconnect = self._before_reconnect or self._last
                return f"Connection lost ({frame.text('reason')}), reconnecting..."
            case "_reconnected":
                text, self._before_reconnect = self._before_reconnect, ""
                return text
            case _:
                return ""


def plan_text(todos: list[Json]) -> str:
    """Return the progress of a plan, with its current item."""
    if not todos:
        return "📋 Planning..."
    done = sum(todo.get("status") == "completed" for todo in todos)
    current = next((str(todo.get("content", "")) for todo in todos if todo.get("status") == "in_progress"), "")
    return f"📋 {done}/{len(todos)} done" + (f": {shorten(current)}" if current else "")


def limit_statuses(events: list[Json]) -> list[Json]:
    """Keep only the last status of a batch that has too many, because Open WebUI writes each status to its database."""
    positions = [index for index, event in enumerate(events) if event["type"] == "status"]
    removed = positions[:-1] if len(positions) > MAX_STATUSES_PER_BATCH else []
    return [event for index, event in enumerate(events) if index not in removed]


class TaskList:
    """Turns plans of the main agent into Open WebUI's task list, which the final event removes."""

    def __init__(self) -> None:
        self._is_shown = False

    def feed(self, frame: Frame) -> list[Json]:
        todos = as_objects(frame.data.get("items")) if frame.type == "plan" and frame.is_main_agent else []
        if not todos:
            return []
        self._is_shown = True
        tasks = [
            {"id": str(number), "content": str(todo.get("content", "")), "status": str(todo.get("status", "pending"))}
            for number, todo in enumerate(todos, 1)
        ]
        return [tasks_event(tasks)]

    def final_event(self) -> Json | None:
        return tasks_event([]) if self._is_shown else None


def tasks_event(tasks: list[dict[str, str]]) -> Json:
    return {"type": "chat:message:tasks", "data": {"tasks": tasks}}


# --- citations --------------------------------------------------------------------------------------------------------
# The sources that Open WebUI lists below an answer: tool results, and sources that the agent cites.


MAX_CITATION_CHARS = 32_000
MAX_MESSAGE_CITATION_CHARS = 256_000
"""Size limit of all citations of a message together. Open WebUI stores the complete chat again with each citation."""
CITATION_PREVIEW_CHARS = 500


class Citations:
    """Turns tool results and cited sources into source events. Each has its own id, by which Open WebUI groups them."""

    def __init__(self, state: RunState, run_id: Callable[[], str], options: DisplayOptions) -> None:
        self._state = state
        self._run_id = run_id
        self._cite_tools = options.tool_citations
        self._count = 0
        self._chars_left = MAX_MESSAGE_CITATION_CHARS

    def feed(self, frame: Frame) -> list[Json]:
        match frame.type:
            case "tool_end" if (call := self._state.call(frame)) and self._cite_tools:
                return self._cite_call(call)
            case "citation":
                return [self._cite_source(frame.text("title"), frame.text("url"), frame.text("text"))]
            case "answer":
                return [self._cite_source(title, url, "") for title, url in _answer_sources(frame)]
            case _:
                return []

    def _cite_call(self, call: ToolCall) -> list[Json]:
        if call.error is not None or not call.result_seen or not call.output.strip():
            return []
        metadata = {"parameters": self._parameters(call)}
        return [self._source(call.key(self._run_id()), f"🔧 {call.title}", call.output, literal_markdown, metadata)]

    def _parameters(self, call: ToolCall) -> Json:
        if len(call.args) <= min(MAX_CITATION_CHARS, self._chars_left):
            self._chars_left -= len(call.args)
            return call.parameters
        return {"arguments": f"{call.args[:CITATION_PREVIEW_CHARS]}… ({len(call.args):,} characters in all)"}

    def _cite_source(self, title: str, url: str, text: str) -> Json:
        self._count += 1
        source_id = url if url.startswith(("http://", "https://")) else f"{self._run_id()}.s{self._count}"
        return self._source(source_id, title or url, text or title or url, break_markup, {})

    def _source(self, source_id: str, name: str, text: str, escape: Callable[[str], str], metadata: Json) -> Json:
        """Return a source event. Its text is escaped, because Open WebUI renders it as Markdown and HTML."""
        fits = min(len(text), MAX_CITATION_CHARS) <= self._chars_left
        limit = MAX_CITATION_CHARS if fits else CITATION_PREVIEW_CHARS
        document = escape(text[:limit])
        if len(text) > limit:
            document = f"{document}\n\n… ({len(text):,} characters in all)"
        self._chars_left = max(0, self._chars_left - len(document))
        return source_event(source_id, name, document, metadata)


def _answer_sources(frame: Frame) -> list[tuple[str, str]]:
    """Return the title and the URL of each source of an answer. A server of an older version sends only its text."""
    links = as_objects(frame.data.get("source_links"))
    found = [(str(link.get("title") or ""), str(link.get("url") or "")) for link in links]
    if any(title or url for title, url in found):
        return [(title, url) for title, url in found if title or url]
    sources = frame.data.get("sources")
    return [("", str(text)) for text in cast(list[Any], sources)] if isinstance(sources, list) else []


def source_event(source_id: str, name: str, document: str, metadata: Json) -> Json:
    source: Json = {"id": source_id, "name": name}
    if source_id.startswith("http"):
        source["url"] = source_id
    metadata = {"source": source_id, "name": name, **metadata}
    return {"type": "source", "data": {"source": source, "document": [document], "metadata": [metadata]}}


# --- answers ----------------------------------------------------------------------------------------------------------
# Turns the JSON Schema of an answer into the fields of dialogs, and typed texts into values.


MAX_REFERENCES = 20


class AnswerField(NamedTuple):
    """One value that a dialog asks for. `name` is "" if the answer is this value alone."""

    name: str
    schema: Json
    is_required: bool

    @property
    def title(self) -> str:
        return str(self.schema.get("title") or self.name or "Your answer")

    @property
    def choices(self) -> list[Json]:
        return listed_choices(self.schema)


def as_list(value: Any) -> list[Any]:
    """Return a list unchanged, and an empty one for any other value."""
    return cast(list[Any], value) if isinstance(value, list) else []


def answer_fields(schema: Json) -> list[AnswerField]:
    """Return a field for each property of an object schema, or one field for any other schema."""
    root = resolved_schema(schema, schema)
    required = as_list(root.get("required"))
    return [
        AnswerField(name, resolved_schema(as_object(one), schema), name in required)
        for name, one in as_object(root.get("properties")).items()
    ] or [AnswerField("", root, is_required=True)]


def resolved_schema(schema: Json, root: Json) -> Json:
    """Return a schema with its `$ref` followed, and without the alternative null."""
    for _ in range(MAX_REFERENCES):
        ref = schema.get("$ref")
        if not isinstance(ref, str):
            break
        target: Any = root
        for part in filter(None, ref.removeprefix("#").split("/")):
            target = as_object(target).get(part)
        schema = {**as_object(target), **{key: value for key, value in schema.items() if key != "$ref"}}
    others = [as_object(one) for one in schema.get("anyOf") or () if as_object(one).get("type") != "null"]
    if len(others) == 1:
        schema = {**resolved_schema(others[0], root), **{key: value for key, value in schema.items() if key != "anyOf"}}
    return schema


def listed_choices(schema: Json) -> list[Json]:
    """Return the values that a schema lists, as `{"label", "value", "description"}`; [] if it lists none."""
    if isinstance(schema.get("enum"), list):
        return [{"label": as_text(value), "value": value, "description": ""} for value in schema["enum"]]
    if schema.get("type") == "boolean":
        return [{"label": label, "value": label == "Yes", "description": ""} for label in ("Yes", "No")]
    alternatives = [as_object(one) for one in schema.get("oneOf") or schema.get("anyOf") or ()]
    if not alternatives or not all("const" in one for one in alternatives):
        return []
    return [
        {
            "label": str(one.get("title") or as_text(one["const"])),
            "value": one["const"],
            "description": str(one.get("description") or ""),
        }
        for one in alternatives
    ]


def typed_value(text: str, schema: Json) -> Any:
    """Return the JSON value that a typed text stands for. Raises ValueError with a sentence for the user."""
    choices = listed_choices(schema)
    for choice in choices:
        if text.strip().casefold() in (str(choice["label"]).casefold(), as_text(choice["value"]).casefold()):
            return choice["value"]
    if choices:
        raise ValueError(f"Choose one of: {', '.join(str(choice['label']) for choice in choices)}.")
    types = as_list(schema.get("type")) or [schema["type"]] if "type" in schema else []
    items = as_object(schema.get("items"))
    if "array" in types and not text.lstrip().startswith("[") and _is_line(items):
        return [typed_value(part.strip(), items) for part in text.replace("\n", ",").split(",") if part.strip()]
    if "string" in types or not types:
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"This is not valid JSON: {error}.") from None


def _is_line(schema: Json) -> bool:
    return bool(listed_choices(schema)) or schema.get("type") in (None, "string", "number", "integer")


def initial_text(schema: Json) -> str:
    """Return the default of a schema as the text with which a dialog begins."""
    default = schema.get("default")
    return "" if default is None else as_text(default)


# --- approvals --------------------------------------------------------------------------------------------------------
# Asks the user in the chat for decisions and answers, and sends them to the server.


EventCall = Callable[[Json], Awaitable[Any]]
"""Open WebUI's `__event_call__`: shows a dialog in the chat and returns the user's input."""

REPEAT_SECONDS = 5
MAX_ARGUMENT_BYTES = 1_000_000
"""Size limit of arguments that a dialog can show for review. Larger ones are decided outside of the chat."""
CARD_CHARS = 1500
"""Limit of the text on the card, which does not scroll: more text would push its buttons off the screen."""
DECISIONS = {
    "approve": "Let it run with these arguments.",
    "edit": "Change the arguments first.",
    "reject": "Do not run it. The agent gets the text under Other as the reason.",
}
GRAPH_QUESTION = "interrupt"
"""The name of a request that is a question of a LangGraph graph, not about a tool."""
EDIT_OR_ANSWER = "Edit or answer"
MAX_OPTIONS = 3
"""How many options a card of Open WebUI can have, besides Other."""
SHOW_OPTION = {"label": "Show all", "description": "See the complete arguments first."}


class Approvals:
    """Asks the user to decide the approval requests of a run, one at a time.

    The server reports every decision, made in this chat or elsewhere, as a frame, which closes the dialog."""

    def __init__(
        self,
        client: LimelightClient,
        event_call: EventCall | None,
        send_frame: Callable[[Frame], Awaitable[None]],
        metadata: Json,
    ) -> None:
        self._client = client
        self._dialog = ApprovalDialog(event_call, metadata)
        self._send_frame = send_frame
        self._lock = asyncio.Lock()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def feed(self, frame: Frame) -> None:
        if frame.type != "approval":
            return
        approval_id = frame.text("approval_id")
        if frame.data.get("state") != "requested":
            if task := self._tasks.pop(approval_id, None):
                task.cancel()  # closes the dialog too
        elif approval_id not in self._tasks:
            self._tasks[approval_id] = asyncio.create_task(self._request_decision(approval_id, frame))

    async def close(self) -> None:
        tasks, self._tasks = list(self._tasks.values()), {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _request_decision(self, approval_id: str, frame: Frame) -> None:
        """Ask the user until the server accepts a decision. A decision elsewhere or an expiry cancels this task."""
        problem, has_instructed = "", False
        async with self._lock:
            while True:
                frame = await self._complete_args(frame)
                is_truncated = frame.data.get("truncated")  # a user must see arguments before approving them
                decision = None if is_truncated else await self._dialog.ask(frame, problem)
                problem = await self._send_decision(approval_id, decision) if decision else ""
                if decision and not problem:
                    return
                if not decision:
                    if not has_instructed:
                        await self._send_instruction(frame)
                    has_instructed = True
                    await asyncio.sleep(REPEAT_SECONDS)

    async def _complete_args(self, frame: Frame) -> Frame:
        """Return the frame with complete arguments instead of a preview, if they are not too long."""
        if not frame.data.get("truncated") or frame.number("size") > MAX_ARGUMENT_BYTES:
            return frame
        approval = await self._client.download_object(self._path(frame.text("approval_id")), 2 * MAX_ARGUMENT_BYTES)
        if "args" not in approval:
            return frame
        return frame._replace(
            data={**frame.data, "args": approval["args"], "truncated": bool(approval.get("truncated"))}
        )

    def _path(self, approval_id: str) -> str:
        return f"/runs/{self._client.run_id}/approvals/{quote(approval_id, safe='')}"

    async def _send_instruction(self, frame: Frame) -> None:
        """Show in the chat how to decide the approval in another way, for example with the command line."""
        command = f"limelight approve {self._client.run_id}{self._client.command_user}"
        instruction = f"waiting for approval: answer here, or run `{command}`"
        if frame.data.get("truncated"):
            instruction = f"waiting for approval, but its arguments cannot be shown here: run `{command}`"
        approval = {key: frame.text(key) for key in ("approval_id", "tool_id", "name")}
        await self._send_frame(Frame("_unanswered", {**approval, "instruction": instruction}))

    async def _send_decision(self, approval_id: str, decision: Json) -> str:
        """Send a decision to the server. Return the reason if the server refuses it, "" if the approval is decided."""
        try:
            await self._client.request_json("POST", self._path(approval_id), decision)
        except RequestRefused as refused:
            is_decided = refused.code in ("already_decided", "expired") or refused.status == 404
            return "" if is_decided else str(refused)
        except ConnectionLost as error:
            return str(error)
        return ""


class ApprovalDialog:
    """The dialogs for an approval: a card above the message field that asks for a decision, and an argument editor."""

    def __init__(self, event_call: EventCall | None, metadata: Json) -> None:
        self._event_call = event_call
        self._metadata = metadata

    async def ask(self, frame: Frame, problem: str) -> Json | None:
        """Ask for a decision or an answer. Return its JSON body, None if the user does not answer.

        `problem` says why the server refused the previous decision.
        """
        if isinstance(frame.data.get("answer_schema"), dict):
            return await self._ask_question(frame, problem)
        offered = [name for name in DECISIONS if name in (frame.data.get("decisions") or DECISIONS)]
        args = frame.data.get("args")
        while True:
            card = approval_card(frame.text("name"), args, offered, problem, frame.text("question"))
            answer = await self._show_card(card)
            option = answer.get("option_index") if answer.get("type") == "option" else None
            if not answer:
                return None
            if not isinstance(option, int) or not 0 <= option <= len(offered):
                return {"decision": "reject", "reason": str(answer.get("text") or answer.get("label") or "")[:500]}
            if option == len(offered):
                await self._show_args(format_args(args))
            elif offered[option] != "edit":
                return {"decision": offered[option]}
            elif (decision := await self._edit_args(format_args(args))) != {}:
                return decision

    async def _ask_question(self, frame: Frame, problem: str) -> Json | None:
        """Ask a question that has a form: by its choices on a card, or by dialogs for its fields."""
        args, fields = frame.data.get("args"), answer_fields(frame.data["answer_schema"])
        while True:
            options = question_options(frame, fields)
            reply = await self._show_card(question_card(frame, fields, options, problem))
            index = reply.get("option_index") if reply.get("type") == "option" else None
            decision: Json | None
            if not reply:
                return None
            if not isinstance(index, int) or not 0 <= index < len(options):
                text = str(reply.get("text") or reply.get("label") or "")
                decision, problem = other_decision(text, fields, is_answer=text_is_answer(frame, fields))
            elif "answer" in options[index]:
                decision = {"decision": "respond", "answer": options[index]["answer"]}
            elif options[index]["name"] == "answer":
                decision, problem = await self._fill_in(fields, frame.text("question")), ""
            elif options[index]["name"] == "edit":
                takes_text = options[index]["label"] == EDIT_OR_ANSWER
                decision, problem = await self._edit_args(format_args(args), takes_text=takes_text), ""
            else:
                decision = {"decision": options[index]["name"]}
            if decision != {}:
                return decision

    async def _fill_in(self, fields: list[AnswerField], question: str) -> Json | None:
        """Ask for each field. Return the decision, {} if the user closes a dialog, None if the user does not answer."""
        values: Json = {}
        for field in fields:
            message, text = "", initial_text(field.schema)
            while True:
                reply = await self._call({"type": "input", "data": input_dialog(field, question, message, text)})
                if not isinstance(reply, str):
                    return {} if reply is False else None
                if not reply and not field.is_required:
                    break
                try:
                    values[field.name] = typed_value(reply, field.schema)
                    break
                except ValueError as error:
                    message, text = str(error), reply
        return {"decision": "respond", "answer": values.get("", values)}

    async def _show_card(self, card: Json) -> Json:
        """Show the card. Return the chosen option or the text under Other; an empty object without an answer."""
        data: Json = {"questions": [card], "allow_other": True, "timeout_ms": 240_000}
        reply = as_object(await self._call({"type": "request:user_input", "data": data}))
        return as_object(as_object(reply.get("answers")).get("decision")) if reply.get("status") == "answered" else {}

    async def _show_args(self, args: str) -> None:
        data = {"title": "Complete arguments", "message": "Changes here have no effect.", "value": args}
        await self._call({"type": "input", "data": {**data, "placeholder": ""}})

    async def _edit_args(self, args: str, *, takes_text: bool = False) -> Json | None:
        """Show the editor. Return the decision with the edited arguments or, if it takes a text, with the answer.

        Return an empty object if the user closes the editor, and None if the user does not answer.
        """
        message = "The new arguments, as JSON."
        if takes_text:
            message += " Any other text is your answer in place of the action."
        while True:
            data = {"title": "Edit the arguments", "message": message, "placeholder": "{}", "value": args}
            text = await self._call({"type": "input", "data": data})
            if not isinstance(text, str):
                return {} if text is False else None
            if takes_text and text.strip() and not text.lstrip().startswith("{"):
                return {"decision": "respond", "answer": text}
            try:
                edited = json.loads(text)
            except ValueError as error:
                message, args = f"This is not valid JSON: {error}.", text
                continue
            if isinstance(edited, dict):
                return {"decision": "edit", "args": edited}
            message, args = 'Arguments are a JSON object like {"name": "value"}.', text

    async def _call(self, event: Json) -> Any:
        if self._event_call is None:
            return None
        await self._find_tab()
        try:
            return await self._event_call(event)
        except Exception:  # the tab was closed; the approval stays open on the server
            return None

    async def _find_tab(self) -> None:
        """Update the socket id of the user's browser tab, which changes when the user reloads the page.

        Open WebUI itself looks for the new socket only if the old one disconnects during a call."""
        sockets = sys.modules.get("open_webui.socket.main")
        find_socket = getattr(sockets, "get_user_chat_session_id", None)
        pool = getattr(sockets, "SESSION_POOL", None)
        if find_socket is None or pool is None or pool.get(self._metadata.get("session_id")) is not None:
            return
        with contextlib.suppress(Exception):
            user_id, chat_id = self._metadata.get("user_id"), self._metadata.get("chat_id")
            socket_id = await asyncio.to_thread(find_socket, user_id, chat_id)
            if socket_id is not None:
                self._metadata["session_id"] = socket_id


def approval_card(name: str, args: Any, offered: list[str], problem: str, asked: str = "") -> Json:
    """Return the card for an approval. For long arguments it shows the beginning, and offers an option to show all.

    `asked` is the agent's own question.
    """
    shown = json.dumps(args, ensure_ascii=False)
    options: list[Json] = [{"label": each.capitalize(), "description": DECISIONS[each]} for each in offered]
    if len(shown) > CARD_CHARS:
        hint = "choose Edit to see all" if "edit" in offered else "choose Show all to see them"
        shown = f"{shown[:CARD_CHARS]} … ({len(shown) - CARD_CHARS:,} more characters: {hint})"
        options += [] if "edit" in offered else [SHOW_OPTION]
    question = "\n".join(filter(None, (asked[:CARD_CHARS], f"May {name or 'the tool'} run with {shown}?")))
    card: Json = {"id": "decision", "header": "Approval", "question": f"{problem}\n{question}".strip()}
    return {**card, "options": options, "allow_other": True}


def question_options(frame: Frame, fields: list[AnswerField]) -> list[Json]:
    """Return the options of a question's card: its choices, or what the user can do. A card takes two or three."""
    choices = fields[0].choices if len(fields) == 1 and not fields[0].name else []
    if 2 <= len(choices) <= MAX_OPTIONS:
        return [
            {"name": "answer", "label": c["label"], "text": c["description"], "answer": c["value"]} for c in choices
        ]
    offered = [name for name in DECISIONS if name in (frame.data.get("decisions") or DECISIONS)]
    if frame.text("name") == GRAPH_QUESTION and len(offered) == MAX_OPTIONS:
        offered.remove("edit")
    options = [{"name": name, "label": name.capitalize(), "text": _about(frame, name)} for name in offered]
    if len(options) == MAX_OPTIONS and not is_question(frame):
        options[1] |= {"label": EDIT_OR_ANSWER, "text": "Change the arguments first, or answer in its place."}
    elif len(options) < MAX_OPTIONS:
        answer = {"name": "answer", "label": "Answer", "text": "Type or choose the answer."}
        options.insert(0 if is_question(frame) else 1, answer)
    return options


def is_question(frame: Frame) -> bool:
    """Whether an answer is what the agent waits for. An action can also be answered, but is first to be approved."""
    return frame.text("name") == GRAPH_QUESTION or "approve" not in (frame.data.get("decisions") or DECISIONS)


def text_is_answer(frame: Frame, fields: list[AnswerField]) -> bool:
    """Whether a text under Other is the answer. For an action and for a form it is the reason of a rejection."""
    return is_question(frame) and len(fields) == 1 and not fields[0].name


def _about(frame: Frame, decision: str) -> str:
    if frame.text("name") != GRAPH_QUESTION:
        return DECISIONS[decision]
    return {"approve": "Continue without an answer: yes.", "reject": "Continue without an answer: no."}.get(
        decision, DECISIONS[decision]
    )


def question_card(frame: Frame, fields: list[AnswerField], options: list[Json], problem: str) -> Json:
    """Return the card for a question."""
    name, args, asked = frame.text("name"), frame.data.get("args"), frame.text("question")
    shown = json.dumps(args, ensure_ascii=False)
    if name != GRAPH_QUESTION:
        asked = "\n".join(filter(None, (asked, f"{name}: {shown}")))
    elif not asked:
        asked = shown
    cut = asked if len(asked) <= CARD_CHARS else f"{asked[:CARD_CHARS]} …"
    hint = "Text under Other is your answer." if text_is_answer(frame, fields) else ""
    if fields[0].name:
        hint = f"It asks for {', '.join(field.title for field in fields)}."
    card: Json = {"id": "decision", "header": "Question", "question": "\n".join(filter(None, (problem, cut, hint)))}
    shown_options = [{"label": option["label"], "description": option["text"]} for option in options]
    return {**card, "options": shown_options, "allow_other": True}


def other_decision(text: str, fields: list[AnswerField], *, is_answer: bool) -> tuple[Json, str]:
    """Return the decision for a text under Other, and a message if the text does not fit; the decision is then {}."""
    if not is_answer:
        return {"decision": "reject", "reason": text[:500]}, ""
    try:
        return {"decision": "respond", "answer": typed_value(text, fields[0].schema)}, ""
    except ValueError as error:
        return {}, str(error)


def input_dialog(field: AnswerField, question: str, message: str, value: str) -> Json:
    """Return the dialog for one field: a list of its choices, or a text field."""
    about = str(field.schema.get("description") or "")
    several = [str(choice["label"]) for choice in listed_choices(as_object(field.schema.get("items")))]
    listed = f"Several of: {', '.join(several)}." if several else ""
    optional = "" if field.is_required else "Leave it empty if there is none."
    lines = (message, about or ("" if field.name else question), listed, optional)
    dialog: Json = {"title": field.title, "message": "\n".join(filter(None, lines)), "placeholder": "", "value": value}
    if not field.choices:
        return dialog
    options = [{"label": choice["label"], "value": str(choice["label"])} for choice in field.choices]
    return {**dialog, "input": {"type": "select", "options": options}}


def format_args(args: Any) -> str:
    return json.dumps(args, ensure_ascii=False, indent=2)


# --- run_presenter ----------------------------------------------------------------------------------------------------
# Presents one run: passes each frame to the display, the status line, citations and approvals.
#
# It returns chunks and events, and sends nothing itself.


LOG = logging.getLogger("deep_agent_pipe")

TEXT_DISPLAY = "text"
"""The display for clients of Open WebUI's API, which get only text. No valve can select it."""
STOPPED = "Stopped"
STOPPED_HERE = "Stopped here; the server was not reached, so the agent may continue"


class Display(Protocol):
    """Interface of the displays, which turn frames into chunks for Open WebUI without network, event loop or clock."""

    def feed(self, frame: Frame) -> None: ...

    def flush(self) -> list[Chunk]:
        """Return the chunks for the frames since the last call."""
        ...

    def close(self) -> None:
        """Finish all open items at the end of a run: Open WebUI would execute a call that has no output."""
        ...


def create_display(name: str, state: RunState, run_id: Callable[[], str]) -> Display:
    match name:
        case "collapse" | "plain":
            return CollapseDisplay(state, run_id, time.monotonic, show_steps=name == "collapse")
        case "details":
            return DetailsDisplay(state, time.monotonic)
        case "native":
            return NativeDisplay(state, run_id, time.monotonic)
        case _:
            return DetailsDisplay(state, time.monotonic, blocks=False)


class RunOutcome:
    """How a run ended, from its frames: success, error or Stop. `status` is the final text of the status line."""

    def __init__(self, state: RunState, *, show_usage: bool) -> None:
        self._state = state
        self._show_usage = show_usage
        self._error = ""
        self.status = "Complete"

    def feed(self, frame: Frame) -> None:
        if frame.type == "error":
            message = frame.text("message") or "the run failed"
            self._error = f"Interrupted: {message}" if frame.data.get("code") == "interrupted" else message
            self.status = f"Failed: {shorten(self._error, 200)}"
        elif frame.type == "cancelled":
            self.status = STOPPED

    def chunks(self) -> list[Chunk]:
        """Return chunks with the token usage and the error. After an exception Open WebUI would discard the message."""
        chunks: list[Chunk] = []
        total = self._state.input_tokens + self._state.output_tokens
        if total and self._show_usage:
            usage = {"input_tokens": self._state.input_tokens, "output_tokens": self._state.output_tokens}
            chunks.append({"type": "response.completed", "response": {"usage": {**usage, "total_tokens": total}}})
        if self._error:
            chunks.append({"error": {"message": self._error}})
        return chunks


class RunPresenter:
    """Passes the frames of a run to the display and all other views. An error in one does not affect the others."""

    def __init__(self, client: LimelightClient, options: DisplayOptions, public_url: str, approvals: Approvals) -> None:
        state = RunState()
        self.outcome = RunOutcome(state, show_usage=options.display != TEXT_DISPLAY)
        self._downloader = Downloader(client, public_url)
        self._display = create_display(options.display, state, lambda: client.run_id)
        self._files = FileList(state, images_in_rows=options.display == "native")
        self._status = StatusLine(options)
        self._tasks = TaskList()
        self._consumers = (state, self._display, self.outcome, self._files, approvals)
        self._event_sources = (self._status, self._tasks, Citations(state, lambda: client.run_id, options))

    async def feed(self, frame: Frame) -> list[Json]:
        """Pass one frame to all views, and return the events for Open WebUI that result from it."""
        events: list[Json] = []
        with _logged_errors(frame.type):
            frame = await self._downloader.complete(frame)
        for consumer in self._consumers:
            with _logged_errors(frame.type):
                consumer.feed(frame)
        for source in self._event_sources:
            with _logged_errors(frame.type):
                events += source.feed(frame)
        return events

    def flush(self) -> list[Chunk]:
        """Return the chunks with the changes of the message since the last call."""
        return self._display.flush()

    def close(self) -> list[Chunk]:
        """Finish the display and return the last chunks."""
        chunks: list[Chunk] = []
        with _logged_errors("close"):
            self._display.close()
        with _logged_errors("flush"):
            chunks += self._display.flush()
        return [*chunks, *self.outcome.chunks()]

    def final_events(self) -> list[Json]:
        events = [self._files.final_event(), self._tasks.final_event(), self._status.final_event(self.outcome.status)]
        return [event for event in events if event is not None]


@contextlib.contextmanager
def _logged_errors(step: str) -> Generator[None]:
    try:
        yield
    except Exception:  # an exception of a pipe makes Open WebUI discard the message
        LOG.warning("Deep Agent Pipe: failed to show %s; skipped", step, exc_info=True)


# --- turn -------------------------------------------------------------------------------------------------------------
# One turn of a chat: follows a run to its end, and sends its chunks and events to Open WebUI.


EventEmitter = Callable[[Json], Awaitable[None]]
"""Open WebUI's `__event_emitter__`: sends an event to the chat."""

BATCH_SECONDS = 0.04
"""Minimum time between two batches. With a chunk for each token, browsers would still render long after the run."""
IDLE_SECONDS = 1.0
"""Time without frames after which an empty batch is yielded, so that a display can send deferred changes."""


class Turn:
    """One turn of a chat, from the request to the end of its run.

    Clients of Open WebUI's API have no event emitter and no event call. They get only text.
    """

    def __init__(
        self,
        valves: Valves,
        body: Json,
        user: Json,
        metadata: Json,
        event_emitter: EventEmitter | None,
        event_call: EventCall | None,
    ) -> None:
        self._valves = valves
        self._user = user
        self._metadata = metadata
        self._event_emitter = event_emitter
        self._event_call = event_call
        self._request = build_request(body, user, metadata)
        self._options = DisplayOptions.resolve(valves, user.get("valves"))
        if event_emitter is None:
            self._options = self._options._replace(display=TEXT_DISPLAY)

    async def text(self) -> str:
        """Run the turn and return all of its text, for callers without a stream."""
        self._options = self._options._replace(display=TEXT_DISPLAY)
        text, error = "", ""
        async with contextlib.aclosing(self.stream()) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, str):
                    text += chunk
                elif "error" in chunk:
                    error = f"Error: {chunk['error']['message']}"
        return f"{text}\n\n{error}".strip() if error else text

    async def stream(self) -> AsyncGenerator[Chunk, None]:
        """Run the turn and yield its chunks. Open WebUI's Stop cancels this generator, which cancels the run."""
        async with registered_request(self._request), LimelightClient(self._valves, self._user) as client:
            queue: asyncio.Queue[Frame | None] = asyncio.Queue(1000)
            approvals = Approvals(client, self._event_call, queue.put, self._metadata)
            presenter = RunPresenter(client, self._options, self._valves.PUBLIC_URL, approvals)
            reader = asyncio.create_task(self._read(client, queue))
            try:
                async for frames in batches(queue):
                    events = [event for frame in frames for event in await presenter.feed(frame)]
                    for chunk in presenter.flush():
                        yield chunk
                    for event in limit_statuses(events):  # after the chunks: Open WebUI stores the chat for each event
                        await self._emit(event)
                for chunk in presenter.close():
                    yield chunk
            except (asyncio.CancelledError, GeneratorExit):
                presenter.outcome.status = STOPPED
                if not await self._cancel(client):
                    presenter.outcome.status = STOPPED_HERE
                raise
            except Exception as error:  # an exception of a pipe makes Open WebUI discard the message
                presenter.outcome.feed(await self._internal_error(client, error))
                for chunk in presenter.close():
                    yield chunk
            finally:
                reader.cancel()
                await asyncio.gather(reader, approvals.close(), return_exceptions=True)
                for event in presenter.final_events():
                    await self._emit(event)

    async def _read(self, client: LimelightClient, queue: asyncio.Queue[Frame | None]) -> None:
        """Put the frames of the run into the queue, followed by an error frame after a failure, and None at the end."""
        try:
            async for frame in RunStream(client, self._request, self._valves.RECONNECT_SECONDS).frames():
                await queue.put(frame)
        except (RequestRefused, ConnectionLost) as error:
            await queue.put(Frame("error", {"message": error_message(error)}))
        except Exception as error:  # the chat keeps the message and shows the error
            await queue.put(await self._internal_error(client, error))
        await queue.put(None)

    async def _internal_error(self, client: LimelightClient, error: Exception) -> Frame:
        """Handle a bug of the pipe: log it, cancel the run, and return an error frame for the chat."""
        LOG.error("Deep Agent Pipe: internal error", exc_info=error)
        await self._cancel(client)
        return Frame("error", {"message": f"{type(error).__name__}: {error}"})

    async def _cancel(self, client: LimelightClient) -> bool:
        return await cancel_run(self._valves, self._user, client, self._request)

    async def _emit(self, event: Json) -> None:
        if self._event_emitter is not None:
            with contextlib.suppress(Exception):  # a failed event must not end the run
                await self._event_emitter(event)


async def batches(queue: asyncio.Queue[Frame | None]) -> AsyncIterator[list[Frame]]:
    """Yield frames in batches until None: the first frame at once, then at most one batch per `BATCH_SECONDS`."""
    next_batch = 0.0
    while True:
        try:
            # Not `wait_for`: before Python 3.12 it loses a cancellation that arrives together with a frame.
            async with asyncio.timeout(IDLE_SECONDS):
                frames = [await queue.get()]
        except TimeoutError:
            yield []
            continue
        await asyncio.sleep(max(0.0, next_batch - time.monotonic()))
        while not queue.empty():
            frames.append(queue.get_nowait())
        next_batch = time.monotonic() + BATCH_SECONDS
        yield [frame for frame in frames if frame is not None]
        if None in frames:
            return


# --- pipe -------------------------------------------------------------------------------------------------------------
# The class that Open WebUI loads: lists agents as models, runs turns, and answers internal tasks.


NAME = "Deep Agent Pipe"
MERGE_REFUSAL = "The Deep Agent Pipe cannot merge answers: take one of them, or merge with another model."


class Pipe:
    """The pipe function of Open WebUI. One instance serves all users and chats, so it stores nothing about them."""

    Valves = Valves
    UserValves = UserValves

    def __init__(self) -> None:
        self.type = "manifold"
        self.name = NAME
        self.valves = Valves.model_validate({})

    async def pipes(self) -> list[dict[str, str]]:
        """Return a model for each agent. If the server is unavailable, return only the default model, which reports the
        error when it is used."""
        default = {"id": DEFAULT_MODEL, "name": ""}
        try:
            async with LimelightClient(self.valves, {}) as client:
                agents = as_objects((await client.request_json("GET", "/agents", seconds=3))["agents"])
                others = [str(agent["name"]) for agent in agents if not agent.get("default")]
        except Exception:  # after an exception Open WebUI would silently remove all models of the pipe
            return [default]
        return [default, *({"id": model_id(name), "name": f" · {name}"} for name in others)]

    async def pipe(
        self,
        body: Json,
        __user__: Json | None = None,
        __metadata__: Json | None = None,
        __task__: str | None = None,
        __task_body__: Json | None = None,
        __event_emitter__: EventEmitter | None = None,
        __event_call__: EventCall | None = None,
    ) -> str | AsyncGenerator[Chunk, None]:
        """Answer a message of the user with a stream of chunks, or with a text if Open WebUI requests no stream."""
        if __task__:
            return answer_task(str(__task__), __task_body__ or body)
        if is_tool_round(as_objects(body.get("messages")), __metadata__ or {}):
            return ""
        turn = Turn(self.valves, body, __user__ or {}, __metadata__ or {}, __event_emitter__, __event_call__)
        return turn.stream() if body.get("stream") else await turn.text()


def answer_task(task: str, body: Json) -> str:
    """Return the reply to an internal task of Open WebUI, such as a title or tags. It starts no run, which is slow."""
    if task == "title_generation":
        question = first_question(as_objects(body.get("messages")))
        return json.dumps({"title": question[:60] or "New chat"}, ensure_ascii=False)
    if task == "moa_response_generation":
        return MERGE_REFUSAL
    lists = {"tags_generation": "tags", "follow_up_generation": "follow_ups", "query_generation": "queries"}
    return json.dumps({lists[task]: []}) if task in lists else ""


def first_question(messages: list[Json]) -> str:
    for message in messages:
        if message.get("role") == "user":
            return " ".join(message_text(message.get("content")).split())
    return ""
