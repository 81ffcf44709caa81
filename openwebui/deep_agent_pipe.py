"""
title: Deep Agent Pipe
author: Limelight
version: 0.1.0
license: Apache-2.0
description: Shows everything an agent does while it does it: tools, arguments, results, sub-agents, plans, approvals.
"""

# Made from the files in openwebui/parts by `make pipe`: change those. To install it, paste this file under Admin Panel,
# Functions, or let `limelight openwebui install` do it.

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

# --- certificates -----------------------------------------------------------------------------------------------------
# Whom to trust behind https. Read once: it takes a tenth of a second, in which Open WebUI would serve nobody.


async def trust(url: str) -> ssl.SSLContext | bool:
    """What httpx calls `verify`. Raises OSError if the certificates that the environment names cannot be read."""
    if not url.startswith("https:"):
        return False
    names = os.environ.get("SSL_CERT_FILE", ""), os.environ.get("SSL_CERT_DIR", "")
    return await asyncio.to_thread(certificates_of, *names)


@functools.cache
def certificates_of(_file: str, _folder: str) -> ssl.SSLContext:
    """httpx looks at the same two variables by itself; here they are what it is remembered by."""
    return httpx.create_ssl_context(verify=True, trust_env=True)


# --- images -----------------------------------------------------------------------------------------------------------
# Which bytes are an image that a browser may be given in a message.


IMAGE_BYTES = 1_000_000
MESSAGE_BYTES = 4_000_000
"""All images of a message together: they are stored with the chat, and go over the wire with each load of it."""


def image_kind(data: bytes) -> str | None:
    """The media type by the bytes themselves: what a tool calls an image may be anything."""
    starts = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF87a": "gif", b"GIF89a": "gif"}
    found = next((kind for start, kind in starts.items() if data.startswith(start)), None)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        found = "webp"
    elif data[4:12] in (b"ftypavif", b"ftypavis"):
        found = "avif"
    return f"image/{found}" if found else None


# --- links ------------------------------------------------------------------------------------------------------------
# Where a link of the server leads to: the paths that it tells have the path in front below which it is.


def located(url: str, path: str) -> str:
    """The address of a path at a server whose own address may have a path: `https://host/limelight`, which the server
    puts in front of its links if it knows of it, and only once belongs into the whole."""
    root = urlsplit(url).path.rstrip("/")
    return url + (path.removeprefix(root) if path.startswith(f"{root}/") else path)


# --- models -----------------------------------------------------------------------------------------------------------
# Agents of the server, as models of Open WebUI.


DEFAULT_MODEL = "default"
"""The server's default agent, whatever its name is."""
CALLED_DEFAULT = "_default"
"""An agent that is called `default` and is not it. No agent can have this for a name: a letter or digit comes first."""


def model_of(agent: str) -> str:
    return CALLED_DEFAULT if agent == DEFAULT_MODEL else agent


def agent_of(model: str) -> str:
    """The agent's name; "" for the default one. Open WebUI puts the id of the function before the model's."""
    chosen = model.partition(".")[2]
    return {DEFAULT_MODEL: "", CALLED_DEFAULT: DEFAULT_MODEL}.get(chosen, chosen)


# --- text -------------------------------------------------------------------------------------------------------------
# Texts made short, and texts made harmless.


PREVIEW_CHARS = 200
LABEL_CHARS = 60
WIDE_CHARS = 100

SEAM = "\u200b"
"""Has no width, and parts two signs that would mean something together."""
SEAMS = re.compile(r"(?<=\\)(?=[(\[a-z])|(?<=\])(?=[(\[:])|(?<=\[)(?=[\d^])|(?<=<)(?=\S)|(?<=\{)(?=\{)")
"""Formulas; links and images; marks of sources and footnotes; tags and mentions; what Open WebUI puts in for names."""
MARKS = re.compile(r"[\\`*~$]|(?<![^\W_])_|_(?![^\W_])")


def parted(text: str) -> str:
    """A text of somebody else of which nothing becomes a link, an image or a tag; its layout stays."""
    return SEAMS.sub(SEAM, text)


def inert(text: str) -> str:
    """One line inside a `<details>` block of which neither markdown nor HTML nor mathematics makes anything.

    Backslashes cannot help against links and formulas: `\\[` begins one. Entities are no way either: Open WebUI
    decodes the block once and then shows them as they are.
    """
    return html.escape(unmarked(" ".join(text.split())), quote=False)


def unmarked(line: str) -> str:
    """A line in which markdown finds nothing. What means something at its beginning is for the caller to part."""
    return MARKS.sub(lambda mark: f"\\{mark[0]}", parted(line))


def literal(text: str) -> str:
    """Markdown that shows a text as it is. Code does not wrap, so long lines of which none is indented are no code."""
    lines = text.split("\n")
    if max(map(len, lines)) > WIDE_CHARS and not any(line[:1].isspace() for line in lines):
        return "  \n".join(f"{SEAM}{unmarked(line)}" for line in lines)
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def outcome(text: str) -> str:
    """What came of a call; there is something to see also if it said nothing."""
    return text if text.strip() else "✓ completed"


def preview(text: str) -> str:
    text = text.strip()
    return text if len(text) <= PREVIEW_CHARS else text[:PREVIEW_CHARS] + "..."


def short(text: str, limit: int = LABEL_CHARS) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def tools_word(count: int) -> str:
    return "1 tool" if count == 1 else f"{count} tools"


# --- tool_output ------------------------------------------------------------------------------------------------------
# What a tool printed, in bounds: a chatty one must cost no more than it can show.


KEPT_CHARS = 50_000
"""Kept of the beginning, and as much again of the end."""
LINE_CHARS = 200


class Printout:
    """The beginning and the end of what was printed, and its last line, which the row shows while the tool runs."""

    def __init__(self) -> None:
        self.last_line = ""
        self._open_line = ""
        self._head: list[str] = []
        self._head_room = KEPT_CHARS
        self._tail: list[str] = []
        self._tail_chars = 0
        self._left_out = 0

    def add(self, piece: str) -> None:
        self._read_lines(piece)
        if self._head_room:
            self._head.append(piece[: self._head_room])
        rest = piece[self._head_room :]
        self._head_room -= len(piece) - len(rest)
        self._tail.append(rest)
        self._tail_chars += len(rest)
        if self._tail_chars > 2 * KEPT_CHARS:
            self._cut()

    @property
    def text(self) -> str:
        """All of it, or both ends with a note between them."""
        self._cut()
        note = f"\n… ({self._left_out:,} characters are left out here)\n" if self._left_out else ""
        return f"{''.join(self._head)}{note}{''.join(self._tail)}"

    def is_in(self, result: str) -> bool:
        """Whether a result repeats it."""
        self._cut()
        head, tail = "".join(self._head), "".join(self._tail)
        ends = [head, tail] if self._left_out else [head + tail]
        return all(end.strip() in result for end in ends)

    def _read_lines(self, piece: str) -> None:
        lines = (self._open_line + piece).splitlines(keepends=True)
        self.last_line = next((line.strip() for line in reversed(lines) if line.strip()), self.last_line)[:LINE_CHARS]
        is_open = bool(lines) and lines[-1].splitlines() == lines[-1:]
        self._open_line = lines[-1][:LINE_CHARS] if is_open else ""

    def _cut(self) -> None:
        tail = "".join(self._tail)
        self._tail = [tail[-KEPT_CHARS:]]
        self._left_out += len(tail) - len(self._tail[0])
        self._tail_chars = len(self._tail[0])


# --- types ------------------------------------------------------------------------------------------------------------
# What all parts speak of: JSON, chunks for Open WebUI, and the two ways to reach a person.


Json = dict[str, Any]
Chunk = Json | str
Emit = Callable[[Json], Awaitable[None]]
Ask = Callable[[Json], Awaitable[Any]]


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def text_of(content: Any) -> str:
    """What a message says, without its images; its content is a text or a list of parts."""
    parts = [part.get("text") for part in as_objects(content)] if isinstance(content, list) else [content]
    return "\n".join(part for part in parts if isinstance(part, str))


def as_object(value: Any) -> Json:
    """A JSON object, or an empty one in place of anything else: what comes from outside may be anything."""
    return cast(Json, value) if isinstance(value, dict) else {}


def as_objects(value: Any) -> list[Json]:
    """The objects of a list."""
    return [as_object(item) for item in cast(list[Any], value)] if isinstance(value, list) else []


# --- continuation -----------------------------------------------------------------------------------------------------
# Calls that end with no question: "Continue response", and rounds that Open WebUI goes by itself.


CONTINUE: Json = {"role": "user", "content": "Continue."}


def goes_round(messages: list[Json], metadata: Json) -> bool:
    """Whether Open WebUI has come back with the result of a call that is none of its business."""
    return not messages or (_last_role(messages) == "tool" and not metadata.get("assistant_message_id"))


def continued(messages: list[Json], metadata: Json) -> list[Json]:
    """Without a question the agent would begin again; for "Continue response" it is asked to go on."""
    goes_on = metadata.get("assistant_message_id") and _last_role(messages) != "user"
    return [*messages, CONTINUE] if goes_on or _last_role(messages) == "assistant" else messages


def _last_role(messages: list[Json]) -> str:
    return str(messages[-1].get("role") or "") if messages else ""


# --- conversation -----------------------------------------------------------------------------------------------------
# The conversation as the agent should hear it: without what the pipe itself put into it.


class CallKey(NamedTuple):
    """What a row's id remembers of its call, so that the next turn tells the agent of its own tools by their names."""

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


OWN_BLOCK = re.compile(
    r'<details(?: type="(?:tool_calls|reasoning)"[^>]*)?>\n<summary>'
    r"(?:🔍 Execution Steps \(\d+ tools?\)|Tool Executed|Thought for \d+ seconds)</summary>.*?</details>\n*",
    re.DOTALL,
)


def cleaned(messages: list[Json]) -> list[Json]:
    """The conversation without what the pipe itself put into it: blocks, labels, and the calls of sub-agents."""
    found: list[Json] = []
    for message in messages:
        kept = {key: message[key] for key in ("role", "content", "name") if message.get(key) is not None}
        kept.setdefault("content", "")
        if message.get("role") == "assistant":
            if isinstance(kept["content"], str):
                kept["content"] = OWN_BLOCK.sub("", kept["content"])
            calls = [call for given in as_objects(message.get("tool_calls")) if (call := own_call(given))]
            if calls:
                kept["tool_calls"] = calls
            elif not kept["content"]:
                continue
        elif message.get("role") == "tool":
            key = CallKey.parse(str(message.get("tool_call_id", "")))
            if key is None or key.depth:
                continue
            kept["tool_call_id"] = key.tool_id
        found.append(kept)
    return found


def own_call(call: Json) -> Json | None:
    key = CallKey.parse(str(call.get("id", "")))
    if key is None or key.depth:
        return None
    arguments = str(as_object(call.get("function")).get("arguments") or "{}")
    return {"id": key.tool_id, "type": "function", "function": {"name": key.name, "arguments": arguments}}


# --- frames -----------------------------------------------------------------------------------------------------------
# Frames of the typed format, out of the bytes of a stream.


class Frame(NamedTuple):
    """One frame of the typed format. Types with an underscore are the pipe's own news."""

    type: str
    data: Json
    cursor: str = ""

    def text(self, key: str) -> str:
        """A value as text; "" if it is not there."""
        value = self.data.get(key)
        return "" if value is None else as_text(value)

    def number(self, key: str) -> int:
        value = self.data.get(key)
        return value if isinstance(value, int) else 0


SIGN_OF_LIFE = Frame("_bytes", {})
"""Stands for bytes, whatever they hold: a server that has nothing to tell sends a heartbeat."""


KNOWN = frozenset({"error", "cancelled", "approval"})
"""Types beyond the Deep Agent document that the pipe shows in its own way. The server also sends what they say in
documented types, for clients that do not know them."""


def is_repeated(frame: Frame) -> bool:
    """Whether another frame, of a type that the pipe knows, says the same."""
    return frame.text("fallback_for") in KNOWN


async def frames_of(pieces: AsyncIterator[bytes]) -> AsyncIterator[Frame]:
    """Frames of a server-sent stream, behind a sign of life for each piece of it.

    Lines end at LF alone: other line ends of Unicode may stand inside JSON."""
    rest, cursor = b"", ""
    async for piece in pieces:
        if piece:
            yield SIGN_OF_LIFE
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if line.startswith(b"id:"):
                cursor = line[3:].strip().decode("ascii", errors="ignore")
            elif line.startswith(b"data:"):
                with contextlib.suppress(ValueError, RecursionError):
                    payload = as_object(json.loads(line[5:]))
                    yield Frame(str(payload.get("type", "")), as_object(payload.get("data")), cursor)


def is_main(frame: Frame) -> bool:
    return not frame.data.get("agent_depth") and not frame.data.get("agent_id")


# --- batching ---------------------------------------------------------------------------------------------------------
# Frames in bundles, because one event per token would keep a browser busy long after the agent is done.


PACE = 0.04
"""Seconds between two chunks: one event per token would keep the browser busy for seconds after the agent is done."""

IDLE = 1.0
"""Seconds without news after which there is an empty bundle: a display may have put something off."""


async def paced(queue: asyncio.Queue[Frame | None]) -> AsyncIterator[list[Frame]]:
    """Frames in bundles: the first one at once, and after that one bundle per pace. None ends it."""
    due = 0.0
    while True:
        try:
            # Not `wait_for`: before Python 3.12 it loses a cancel that comes together with a frame, and so a Stop.
            async with asyncio.timeout(IDLE):
                frames = [await queue.get()]
        except TimeoutError:
            yield []
            continue
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        while not queue.empty():
            frames.append(queue.get_nowait())
        due = time.monotonic() + PACE
        yield [frame for frame in frames if frame is not None]
        if None in frames:
            return


# --- dialog -----------------------------------------------------------------------------------------------------------
# The card above the input of the chat that asks for a decision, and the editor for arguments.


CARD_CHARS = 1500
"""The card does not scroll: with more the buttons would leave the screen."""
DECISIONS = {
    "approve": "Let it run with these arguments.",
    "edit": "Change the arguments first.",
    "reject": "Do not run it. What you write under Other is told to the agent as the reason.",
}
SHOW = {"label": "Show all", "description": "See the whole arguments first."}


class Dialog:
    """Asks by way of Open WebUI, in whichever tab the chat is open."""

    def __init__(self, ask: Ask | None, metadata: Json) -> None:
        self._ask = ask
        self._metadata = metadata

    async def decision(self, frame: Frame, problem: str) -> Json | None:
        """The body of the decision, or None if nobody answers."""
        offered = [name for name in DECISIONS if name in (frame.data.get("decisions") or DECISIONS)]
        args = frame.data.get("args")
        while True:
            answer = await self._answer(card(frame.text("name"), args, offered, problem))
            place = answer.get("option_index") if answer.get("type") == "option" else None
            if not answer:
                return None
            if not isinstance(place, int) or not 0 <= place <= len(offered):
                return {"decision": "reject", "reason": str(answer.get("text") or answer.get("label") or "")[:500]}
            if place == len(offered):
                await self._show(pretty(args))
            elif offered[place] != "edit":
                return {"decision": offered[place]}
            elif (edited := await self._edited(pretty(args))) != {}:
                return edited

    async def _answer(self, question: Json) -> Json:
        """What was chosen or written; nothing if nobody answers."""
        data: Json = {"questions": [question], "allow_other": True, "timeout_ms": 240_000}
        reply = as_object(await self._call({"type": "request:user_input", "data": data}))
        return as_object(as_object(reply.get("answers")).get("decision")) if reply.get("status") == "answered" else {}

    async def _show(self, args: str) -> None:
        data = {"title": "The whole arguments", "message": "What you change here does not count.", "value": args}
        await self._call({"type": "input", "data": {**data, "placeholder": ""}})

    async def _edited(self, args: str) -> Json | None:
        """The decision; nothing in it if the person has only looked; None if nobody answers."""
        message = "The new arguments, as JSON."
        while True:
            data = {"title": "Edit the arguments", "message": message, "placeholder": "{}", "value": args}
            text = await self._call({"type": "input", "data": data})
            if not isinstance(text, str):
                return {} if text is False else None
            try:
                found = json.loads(text)
            except ValueError as error:
                message, args = f"This is not valid JSON: {error}.", text
                continue
            if isinstance(found, dict):
                return {"decision": "edit", "args": found}
            message, args = 'Arguments are a JSON object like {"name": "value"}.', text

    async def _call(self, event: Json) -> Any:
        if self._ask is None:
            return None
        await self._find_the_tab()
        try:
            return await self._ask(event)
        except Exception:  # the dialog is gone with its tab; the question stays open on the server
            return None

    async def _find_the_tab(self) -> None:
        """After a reload the chat has another socket. Open WebUI looks for it only if the old one dies in the call."""
        sockets = sys.modules.get("open_webui.socket.main")
        find = getattr(sockets, "get_user_chat_session_id", None)
        pool = getattr(sockets, "SESSION_POOL", None)
        if find is None or pool is None or pool.get(self._metadata.get("session_id")) is not None:
            return
        with contextlib.suppress(Exception):
            found = await asyncio.to_thread(find, self._metadata.get("user_id"), self._metadata.get("chat_id"))
            if found is not None:
                self._metadata["session_id"] = found


def card(name: str, args: Any, offered: list[str], problem: str) -> Json:
    """The question. Arguments that have no room are not hidden: it says how much is missing, and how to see it."""
    shown = json.dumps(args, ensure_ascii=False)
    options: list[Json] = [{"label": each.capitalize(), "description": DECISIONS[each]} for each in offered]
    if len(shown) > CARD_CHARS:
        see = "choose Edit to see all" if "edit" in offered else "choose Show all to see them"
        shown = f"{shown[:CARD_CHARS]} … ({len(shown) - CARD_CHARS:,} more characters: {see})"
        options += [] if "edit" in offered else [SHOW]
    question = f"May {name or 'the tool'} run with {shown}?"
    asked: Json = {"id": "decision", "header": "Approval", "question": f"{problem}\n{question}".strip()}
    return {**asked, "options": options, "allow_other": True}


def pretty(args: Any) -> str:
    return json.dumps(args, ensure_ascii=False, indent=2)


# --- display ----------------------------------------------------------------------------------------------------------
# What a display is: frames in, chunks for Open WebUI out. Pure: no network, no loop, and a clock only if given.


class Display(Protocol):
    """Turns frames into chunks for Open WebUI. `feed` takes one in; `flush` gives what has changed since."""

    def feed(self, frame: Frame) -> None: ...

    def flush(self) -> list[Chunk]: ...

    def close(self) -> None:
        """Leave nothing open: an unanswered call would be executed by Open WebUI itself."""
        ...


# --- json_body --------------------------------------------------------------------------------------------------------
# What is sent to the server and what it answers, as bytes.


def content_of(body: Json | None, cursor: str = "") -> Json:
    """For httpx. Half a sign, which JSON can hold and UTF-8 cannot, is left out: the chat would send it for ever."""
    headers = {"Last-Event-ID": cursor} if cursor else {}
    if body is None:
        return {"headers": headers}
    content = json.dumps(body, ensure_ascii=False).encode(errors="replace")
    return {"content": content, "headers": {**headers, "Content-Type": "application/json"}}


def problem_of(body: bytes) -> Json:
    """What the server has against it. The page of a proxy is nothing to show in a chat."""
    try:
        return as_object(json.loads(body))
    except ValueError:
        text = body[:300].decode(errors="replace").strip()
    return {} if text.startswith("<") else {"detail": text}


# --- knowledge --------------------------------------------------------------------------------------------------------
# What Open WebUI writes around a question: passages of files and of knowledge.


def apart(messages: list[Json], metadata: Json) -> list[Json]:
    """The question as it was asked, behind a system message with what was written around it.

    On the next turn Open WebUI sends the plain question. An agent that had heard another one would lose its memory."""
    question = text_of(as_object(metadata.get("user_message")).get("content"))
    places = [place for place, message in enumerate(messages) if message.get("role") == "user"]
    if not question.strip() or not places:
        return messages
    message, before, behind = messages[places[-1]], messages[: places[-1]], messages[places[-1] + 1 :]
    said = text_of(message.get("content"))
    if said.strip() == question.strip() or question.strip() not in said:
        return messages
    context: Json = {"role": "system", "content": said.strip().removesuffix(question.strip()).strip()}
    return [*before, context, {**message, "content": _with_text(message.get("content"), question)}, *behind]


def _with_text(content: Any, text: str) -> Any:
    """The same content with another text; images stay."""
    if not isinstance(content, list):
        return text
    return [{"type": "text", "text": text}, *(part for part in as_objects(content) if part.get("type") != "text")]


# --- output_items -----------------------------------------------------------------------------------------------------
# The output items of one message, as Open WebUI keeps them, and what it must be told when they change.


DELTAS = {
    "message": "response.output_text.delta",
    "reasoning": "response.reasoning_text.delta",
    "function_call": "response.function_call_arguments.delta",
}


class Items:
    """The list so far. Changed items are sent again whole, growing texts piece by piece."""

    def __init__(self) -> None:
        self._order: list[str] = []
        self._items: dict[str, Json] = {}
        self._changed: set[str] = set()
        self._pieces: dict[str, str] = {}

    def __contains__(self, item_id: str) -> bool:
        return item_id in self._items

    def __getitem__(self, item_id: str) -> Json:
        return self._items[item_id]

    def put(self, item: Json, *, after: str = "") -> None:
        """Add an item, at the end or behind another one; or replace the one of the same id, where it is."""
        item_id: str = item["id"]
        if item_id not in self._items:
            self._order.insert(self._order.index(after) + 1 if after else len(self._order), item_id)
        elif self._items[item_id] == item:
            return
        self._items[item_id] = item
        self._changed.add(item_id)
        self._pieces.pop(item_id, None)

    def change(self, item_id: str, **values: Any) -> None:
        self.put({**self._items[item_id], **values})

    def grow(self, item_id: str, piece: str) -> None:
        """Append to the text of a message or a thought, or to the arguments of a call."""
        item = self._items[item_id]
        if item["type"] == "function_call":
            self._items[item_id] = {**item, "arguments": item["arguments"] + piece}
        else:
            self._items[item_id] = {**item, "content": text_content(text_in(item) + piece)}
        if item_id not in self._changed:
            self._pieces[item_id] = self._pieces.get(item_id, "") + piece

    def flush(self) -> list[Chunk]:
        """What has changed since the last time, in the order of the list, so that places are right one by one."""
        chunks: list[Chunk] = []
        for place, item_id in enumerate(self._order):
            if item_id in self._changed:
                item = self._items[item_id]
                chunks.append({"type": "response.output_item.added", "output_index": place, "item": item})
            elif item_id in self._pieces:
                delta = {"item_id": item_id, "output_index": place, "delta": self._pieces[item_id]}
                chunks.append({"type": DELTAS[self._items[item_id]["type"]], "content_index": 0, **delta})
        self._changed.clear()
        self._pieces.clear()
        return chunks


def text_content(text: str) -> list[Json]:
    return [{"type": "output_text", "text": text}]


def text_in(item: Json) -> str:
    return "".join(part["text"] for part in item["content"])


def message_item(item_id: str, text: str, status: str = "in_progress") -> Json:
    content = text_content(text)
    return {"type": "message", "id": item_id, "status": status, "role": "assistant", "content": content}


def titled(items: Items, item_id: str, answer: Frame) -> None:
    """A headline for an answer that is there already, behind what was said before it."""
    title = answer.text("title")
    if title and item_id in items:
        text, content = text_in(items[item_id]), answer.data.get("content")
        said = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        before = text.removesuffix(said) if text.endswith(said) else ""
        items.change(item_id, content=text_content(f"{before}### {title}\n\n{text.removeprefix(before)}"))


# --- messages ---------------------------------------------------------------------------------------------------------
# What the main agent says and thinks, as items of the display with rows.


class Voice:
    """One item for each piece of text that nothing interrupts."""

    def __init__(self, items: Items, run_id: Callable[[], str], clock: Callable[[], float]) -> None:
        self._items = items
        self._run_id = run_id
        self._clock = clock
        self._count = 0
        self._text = ""
        self._thought = ""
        self._thought_at = 0.0
        self.last_text = ""

    def say(self, piece: str) -> None:
        self._end_thought()
        if not self._text:
            piece = piece.lstrip("\n")  # what parts two messages parts nothing at the beginning
            if not piece:
                return
            self._text = self.last_text = self._new_id("m")
            self._items.put(message_item(self._text, ""))
        self._items.grow(self._text, piece)

    def think(self, piece: str) -> None:
        self._end_text()
        if not self._thought:
            self._thought, self._thought_at = self._new_id("r"), self._clock()
            thought: Json = {"type": "reasoning", "id": self._thought, "status": "in_progress", "summary": []}
            self._items.put({**thought, "content": text_content("")})
        self._items.grow(self._thought, piece)

    def pause(self) -> None:
        self._end_text()
        self._end_thought()

    def _end_text(self) -> None:
        if self._text:
            self._items.change(self._text, status="completed")
            self._text = ""

    def _end_thought(self) -> None:
        if self._thought:
            seconds = round(self._clock() - self._thought_at)
            self._items.change(self._thought, status="completed", duration=seconds)
            self._thought = ""

    def _new_id(self, kind: str) -> str:
        self._count += 1
        return f"{self._run_id()}.{kind}{self._count}"


# --- run_state --------------------------------------------------------------------------------------------------------
# What the frames so far have told: calls, sub-agents, tokens. All displays look things up here.


class Call:
    """One tool call so far."""

    def __init__(self, frame: Frame, who: str) -> None:
        self.tool_id = frame.text("tool_id")
        self.name = frame.text("name") or "unknown"
        self.agent_id = frame.text("agent_id")
        self.depth = frame.number("agent_depth")
        self.who = who
        self.args = frame.text("args")
        self.has_args = "args" in frame.data
        self.printed = Printout()
        self.result = ""
        self.error: str | None = None
        self.result_seen = True
        self.done = False

    def end(self, result: str, error: str | None, *, result_seen: bool = True) -> None:
        self.result, self.error, self.result_seen, self.done = result, error, result_seen, True

    @property
    def title(self) -> str:
        """Its name, behind that of the sub-agent that made it."""
        if self.who:
            return f"{self.who} › {self.name}"
        return f"{'↳ ' * self.depth}{self.name}"

    @property
    def output(self) -> str:
        """What came of it: the result, below what was printed if the result does not repeat it."""
        if not self.printed.last_line or self.printed.is_in(self.result):
            return self.result
        return f"{self.printed.text.rstrip()}\n\n{self.result}".rstrip()

    @property
    def args_are_whole(self) -> bool:
        return self._object() is not None

    @property
    def parameters(self) -> Json:
        found = self._object()
        return {"arguments": self.args} if found is None else found

    def _object(self) -> Json | None:
        if self.args.rstrip().endswith("}"):
            with contextlib.suppress(ValueError):
                return as_object(json.loads(self.args))
        return None if self.args.strip() else {}


def row_title(call: Call, title: str) -> str:
    """The title of a row. Open WebUI draws a check mark on every call without an error, so the title says the rest."""
    return title if call.result_seen else f"{title} · no result seen"


class Agent:
    """One sub-agent so far. `tool_id` is the call that started it, if one did."""

    def __init__(self, frame: Frame, path: str) -> None:
        self.agent_id = frame.text("agent_id")
        self.parent_id = frame.text("parent_id")
        self.name = frame.text("name") or "sub-agent"
        self.path = f"{path} › {self.name}" if path else self.name
        self.depth = frame.number("depth") or 1
        self.tool_id = frame.text("tool_id")
        self.calls = 0
        self.said = ""
        self.error: str | None = None


class Story:
    """Fed before everything else, so that the others find what a frame refers to."""

    def __init__(self) -> None:
        self.calls: dict[str, Call] = {}
        self.agents: dict[str, Agent] = {}
        self.input_tokens = 0
        self.output_tokens = 0

    def feed(self, frame: Frame) -> None:
        match frame.type:
            case "tool_start":
                self._begin(frame)
            case "tool_args" if (call := self.call(frame)) and not call.has_args:
                call.args += frame.text("content")
            case "tool_output" if call := self.call(frame):
                call.printed.add(frame.text("content"))
            case "tool_end":
                call = self.call(frame) or self._begin(frame)
                result_seen = frame.data.get("result_seen") is not False
                call.end(frame.text("result"), frame.data.get("error"), result_seen=result_seen)
            case "approval" if (call := self.call(frame)) and frame.data.get("state") == "edit":
                call.args, call.has_args = frame.text("args"), True
            case "agent_start":
                parent = self.agents.get(frame.text("parent_id"))
                self.agents[frame.text("agent_id")] = Agent(frame, parent.path if parent else "")
            case "agent_end" if agent := self.agents.get(frame.text("agent_id")):
                agent.error = frame.data.get("error")
            case "token" if agent := self.agents.get(frame.text("agent_id")):
                agent.said += frame.text("content")
            case "usage":
                self.input_tokens += frame.number("input_tokens")
                self.output_tokens += frame.number("output_tokens")
            case _:
                pass

    def call(self, frame: Frame) -> Call | None:
        return self.calls.get(frame.text("tool_id"))

    def started_by(self, tool_id: str) -> Agent | None:
        """The sub-agent that a call started."""
        return next((agent for agent in self.agents.values() if tool_id and agent.tool_id == tool_id), None)

    def line_of(self, agent_id: str) -> list[str]:
        """A sub-agent, the one that started it, and so on up to the main agent, which is not in it."""
        line: list[str] = []
        while agent_id and agent_id not in line:
            line.append(agent_id)
            agent = self.agents.get(agent_id)
            agent_id = agent.parent_id if agent else ""
        return line

    def _begin(self, frame: Frame) -> Call:
        agent = self.agents.get(frame.text("agent_id"))
        call = self.calls[frame.text("tool_id")] = Call(frame, agent.path if agent else "")
        if agent is not None:
            agent.calls += 1
        return call


# --- collapse ---------------------------------------------------------------------------------------------------------
# The display with one closed block for all steps, and the one with the answer alone.


REDRAW_SECONDS = 0.5
CHARS_PER_SECOND = 200_000
"""Each change sends the whole block again, so a large one is sent less often."""


class CollapseDisplay:
    """One closed block with all steps, and the answer below it. `show_steps=False` is the answer alone."""

    def __init__(
        self, story: Story, run_id: Callable[[], str], clock: Callable[[], float], *, show_steps: bool
    ) -> None:
        self._story = story
        self._run_id = run_id
        self._show_steps = show_steps
        self._items = Items()
        self._steps: list[str] = []
        self._text = ""
        self._clock = clock
        self._is_stale = False
        self._next_draw = 0.0

    def flush(self) -> list[Chunk]:
        if self._is_stale and self._clock() >= self._next_draw:
            self._draw()
        return self._items.flush()

    def feed(self, frame: Frame) -> None:
        match frame.type:
            case "token" if is_main(frame):
                self._say(frame.text("content"))
            case "tool_start" if call := self._story.call(frame):
                if not call.depth:
                    self._put_away()
                self._touch()
            case "tool_end" if call := self._story.call(frame):
                self._steps.append(tool_step(call, preview(outcome(call.output))))
                self._touch()
            case "answer":
                titled(self._items, self._answer_id, frame)
            case _:
                pass

    def close(self) -> None:
        for call in self._story.calls.values():
            if not call.done:
                call.end("interrupted", "interrupted")
                self._steps.append(tool_step(call, call.output))
        self._draw()
        if self._answer_id in self._items:
            self._items.change(self._answer_id, status="completed")

    def _say(self, piece: str) -> None:
        piece = piece if self._text else piece.lstrip("\n")
        if piece:
            self._reserve()
            self._text += piece
            self._items.grow(self._answer_id, piece)

    def _put_away(self) -> None:
        """The text so far was not the answer: it was said before a tool."""
        if self._text.strip():
            self._steps.append(f"**🤖 AI:** {html.escape(self._text.strip(), quote=False)}")
        if self._text:
            self._items.put(message_item(self._answer_id, ""))
        self._text = ""

    def _reserve(self) -> None:
        """The block comes first, so it has its place before there is anything in it."""
        if self._answer_id not in self._items:
            if self._show_steps:
                self._items.put(message_item(self._block_id, "", "completed"))
            self._items.put(message_item(self._answer_id, ""))

    def _touch(self) -> None:
        if self._show_steps:
            self._reserve()
            self._is_stale = True

    def _draw(self) -> None:
        """What still runs stands last; Open WebUI draws no block that has nothing in it."""
        calls = self._story.calls.values()
        if calls and self._show_steps:
            self._reserve()
            steps = [*self._steps, *(tool_step(call, "⏳") for call in calls if not call.done)]
            block = steps_block(len(calls), steps)
            self._items.put(message_item(self._block_id, block, "completed"))
            self._next_draw = self._clock() + max(REDRAW_SECONDS, len(block) / CHARS_PER_SECOND)
        self._is_stale = False

    @property
    def _block_id(self) -> str:
        return f"{self._run_id()}.steps"

    @property
    def _answer_id(self) -> str:
        return f"{self._run_id()}.answer"


def tool_step(call: Call, text: str) -> str:
    return f"**🔧 {inert(call.title)}:** {inert(text)}"


def steps_block(count: int, steps: list[str]) -> str:
    body = "\n\n".join(steps)
    return f"<details>\n<summary>🔍 Execution Steps ({tools_word(count)})</summary>\n\n{body}\n\n</details>\n\n"


# --- details ----------------------------------------------------------------------------------------------------------
# The display for old versions of Open WebUI: text that only grows.


class DetailsDisplay:
    """Text that only grows, with a block for each finished tool: what old versions of Open WebUI can draw."""

    def __init__(self, story: Story, clock: Callable[[], float], *, blocks: bool = True) -> None:
        self._story = story
        self._clock = clock
        self._blocks = blocks
        self._new = ""
        self._at_line_start = True
        self._thought = ""
        self._thought_at = 0.0

    def flush(self) -> list[Chunk]:
        """Open WebUI takes a chunk that begins like an event for one, so such a text comes in two."""
        new, self._new = self._new, ""
        pieces = [new[:1], new[1:]] if new.startswith("data:") else [new]
        return [piece for piece in pieces if piece]

    def feed(self, frame: Frame) -> None:
        match frame.type:
            case "token" if is_main(frame):
                self._end_thought()
                text = frame.text("content")
                self._add(text.lstrip("\n") if self._at_line_start else text)
            case "reasoning" if is_main(frame) and self._blocks:
                self._thought_at = self._thought_at or self._clock()
                self._thought += frame.text("content")
            case "tool_start":
                self._end_thought()
            case "tool_end" if (call := self._story.call(frame)) and self._blocks:
                self._add_block(tool_block(call))
            case _:
                pass

    def close(self) -> None:
        self._end_thought()
        for call in self._story.calls.values():
            if not call.done:
                call.end("Error: interrupted", "interrupted")
                if self._blocks:
                    self._add_block(tool_block(call))

    def _end_thought(self) -> None:
        if self._thought.strip():
            seconds = round(self._clock() - self._thought_at)
            quoted = "\n".join(f"> {html.escape(line, quote=False)}" for line in self._thought.strip().splitlines())
            summary = f"<summary>Thought for {seconds} seconds</summary>"
            self._add_block(
                f'<details type="reasoning" done="true" duration="{seconds}">\n{summary}\n{quoted}\n</details>\n\n'
            )
        self._thought, self._thought_at = "", 0.0

    def _add_block(self, block: str) -> None:
        self._add(block if self._at_line_start else f"\n\n{block}")

    def _add(self, text: str) -> None:
        if text:
            self._new += text
            self._at_line_start = text.endswith("\n\n")


def tool_block(call: Call) -> str:
    """A finished call in the form of the Agno documents. As JSON nothing in it breaks the line."""
    name = row_title(call, call.title)
    values = {"id": call.tool_id, "name": name, "arguments": json.dumps(call.parameters, ensure_ascii=False)}
    values["result"] = json.dumps(outcome(call.output), ensure_ascii=False)
    attributes = " ".join(f'{key}="{attribute(value)}"' for key, value in values.items())
    return f'<details type="tool_calls" done="true" {attributes}>\n<summary>Tool Executed</summary>\n</details>\n\n'


def attribute(value: str) -> str:
    """Open WebUI puts in what two braces stand for before it reads anything else, so there must not be two."""
    return html.escape(value, quote=True).replace("{{", "{&#123;")


# --- files ------------------------------------------------------------------------------------------------------------
# Files that tools made, listed above the text.


class Files:
    """Gathers them until the end: Open WebUI replaces the list with each event and keeps the sum of all of them."""

    def __init__(self, story: Story, *, images_in_rows: bool) -> None:
        self._story = story
        self._images_in_rows = images_in_rows
        self._files: list[Json] = []

    def feed(self, frame: Frame) -> None:
        if frame.type == "_image" and not (self._images_in_rows and self._story.call(frame)):
            self._files.append({"type": "image", "name": frame.text("name"), "url": frame.text("url")})
        elif frame.type == "_file":
            self._files.append(_text_file(frame) if frame.data.get("content") is not None else _link(frame))

    def end(self) -> Json | None:
        return {"type": "files", "data": {"files": self._files}} if self._files else None


def _text_file(frame: Frame) -> Json:
    """A file whose text a click shows."""
    about = {"name": frame.text("name"), "content_type": frame.text("media_type"), "size": frame.number("size")}
    shown = {"filename": frame.text("name"), "data": {"content": frame.text("content")}, "meta": about}
    return {"type": "file", "name": frame.text("name"), "size": frame.number("size"), "file": shown}


def _link(frame: Frame) -> Json:
    """A file that a click opens. Open WebUI adds a path of its own to those of the type `file`."""
    return {"type": "doc", "name": frame.text("name"), "size": frame.number("size"), "url": frame.text("url")}


# --- native -----------------------------------------------------------------------------------------------------------
# The display with a live row for each tool.


class NativeDisplay:
    """A live row for each tool and sub-agent, thoughts as reasoning, texts where they were said."""

    def __init__(self, story: Story, run_id: Callable[[], str], clock: Callable[[], float]) -> None:
        self._story = story
        self._run_id = run_id
        self._items = Items()
        self._voice = Voice(self._items, run_id, clock)
        self._keys: dict[str, str] = {}
        self._last_row: dict[str, str] = {}
        self._images: dict[str, list[Json]] = {}
        self._printing: dict[str, Call] = {}
        """Those that printed something since the last flush. Only what is sent is worth a label."""

    def flush(self) -> list[Chunk]:
        for tool_id, call in self._printing.items():
            if call.printed.last_line:
                name = f"{call.title} · {short(call.printed.last_line)}"
                self._items.change(self._keys[tool_id], name=name, status="completed")
        self._printing.clear()
        return self._items.flush()

    def feed(self, frame: Frame) -> None:
        data = frame.data
        match frame.type:
            case "token" if is_main(frame):
                self._voice.say(frame.text("content"))
            case "reasoning" if is_main(frame):
                self._voice.think(frame.text("content"))
            case "plan" if is_main(frame) and data.get("text"):
                self._voice.think(frame.text("text") + "\n\n")
            case "answer":
                titled(self._items, self._voice.last_text, frame)
            case "tool_start" if call := self._story.call(frame):
                self._start(call)
            case "tool_args" | "tool_output" | "approval" | "_unanswered" if call := self._story.call(frame):
                self._progress(call, frame)
            case "tool_end" if call := self._story.call(frame):
                self._end(call)
            case "agent_start" | "agent_end" if agent := self._story.agents.get(frame.text("agent_id")):
                self._agent(agent, ended=frame.type == "agent_end")
            case "_image" if call := self._story.call(frame):
                self._image(call, frame.text("url"))
            case _:
                pass

    def close(self) -> None:
        self._voice.pause()
        for call in self._story.calls.values():
            if not call.done and call.tool_id in self._keys:
                call.end("Error: interrupted", "interrupted")
                self._end(call)
        for agent in self._story.agents.values():
            key = self._keys.get(f"agent {agent.agent_id}")
            if key is not None and f"{key}.out" not in self._items:
                self._items.change(key, status="failed")
                self._output(key, "Error: interrupted")

    def _start(self, call: Call) -> None:
        """A row at the end; that of a sub-agent's tool stands below the sub-agent's other rows."""
        if not call.depth:
            self._voice.pause()
        key = str(CallKey(self._run_id(), call.depth, call.name, call.tool_id))
        self._keys[call.tool_id] = key
        row: Json = {"type": "function_call", "id": key, "call_id": key, "name": call.title, "arguments": call.args}
        row["status"] = "completed" if call.has_args else "in_progress"
        self._put_below(call.agent_id, row)
        agent = self._story.agents.get(call.agent_id)
        if agent is not None and (spawner := self._row_of(agent)):
            self._items.change(spawner, name=f"{agent.path} · {call.name} ({agent.calls})")

    def _put_below(self, agent_id: str, row: Json) -> None:
        """Behind the last row of the agent and of those that it started."""
        before = self._last_row.get(agent_id, "")
        self._items.put(row, after=before)
        for agent in self._story.line_of(agent_id):
            if self._last_row.get(agent, "") == before:
                self._last_row[agent] = row["id"]

    def _progress(self, call: Call, frame: Frame) -> None:
        key = self._keys[call.tool_id]
        self._printing.pop(call.tool_id, None)
        match frame.type:
            case "tool_args" if not call.has_args:
                self._items.grow(key, frame.text("content"))
                if call.args_are_whole:
                    self._items.change(key, status="completed")
            case "tool_output":
                self._printing[call.tool_id] = call
            case "approval":
                waits = frame.data.get("state") == "requested"
                name = f"{call.title} · waiting for approval" if waits else call.title
                self._items.change(key, name=name, arguments=call.args, status="completed")
            case "_unanswered":
                self._items.change(key, name=f"{call.title} · {frame.text('where')}")
            case _:
                pass

    def _end(self, call: Call) -> None:
        if call.tool_id not in self._keys:  # a server that tells of the end only
            self._start(call)
        key = self._keys[call.tool_id]
        self._printing.pop(call.tool_id, None)
        agent = self._story.started_by(call.tool_id)
        status = "completed" if call.error is None else "failed"
        name = row_title(call, _agent_title(agent) if agent else call.title)
        self._items.change(key, name=name, status=status)
        self._output(key, call.output)

    def _output(self, key: str, text: str) -> None:
        item: Json = {"type": "function_call_output", "id": f"{key}.out", "call_id": key, "status": "completed"}
        item["output"] = [{"type": "input_text", "text": outcome(text)}]
        if key in self._images:
            item["files"] = list(self._images[key])
        self._items.put(item, after=key)

    def _agent(self, agent: Agent, *, ended: bool) -> None:
        """A sub-agent is the row of the call that started it; one that nobody called gets a row of its own."""
        key = self._row_of(agent)
        if key is None:
            key = str(CallKey(self._run_id(), agent.depth, agent.name, f"agent-{agent.agent_id}"))
            self._keys[f"agent {agent.agent_id}"] = key
            row: Json = {"type": "function_call", "id": key, "call_id": key, "name": "", "arguments": "{}"}
            self._put_below(agent.parent_id, row)
        self._last_row.setdefault(agent.agent_id, key)
        self._items.change(key, name=_agent_title(agent), status="completed" if agent.error is None else "failed")
        if ended and agent.tool_id not in self._keys:
            self._output(key, agent.said if agent.error is None else f"Error: {agent.error}")

    def _row_of(self, agent: Agent) -> str | None:
        return self._keys.get(agent.tool_id) or self._keys.get(f"agent {agent.agent_id}")

    def _image(self, call: Call, url: str) -> None:
        key = self._keys[call.tool_id]
        self._images.setdefault(key, []).append({"type": "image", "url": url})
        if call.done:
            self._output(key, call.output)


def _agent_title(agent: Agent) -> str:
    return f"{agent.path} ({tools_word(agent.calls)})" if agent.calls else agent.path


# --- displays ---------------------------------------------------------------------------------------------------------
# The displays by their names.


TEXT = "text"
"""For callers who are not in front of a chat. Nobody can choose it."""


def display_of(name: str, story: Story, run_id: Callable[[], str]) -> Display:
    match name:
        case "collapse" | "plain":
            return CollapseDisplay(story, run_id, time.monotonic, show_steps=name == "collapse")
        case "details":
            return DetailsDisplay(story, time.monotonic)
        case "native":
            return NativeDisplay(story, run_id, time.monotonic)
        case _:
            return DetailsDisplay(story, time.monotonic, blocks=False)


# --- run_end ----------------------------------------------------------------------------------------------------------
# How it ended: the last chunks and the last line.


class Ending:
    """Success, unless a frame says otherwise. `usage=False` is for those who could not read what it cost."""

    def __init__(self, story: Story, *, usage: bool) -> None:
        self._story = story
        self._usage = usage
        self._failure = ""
        self.line = "Complete"

    def feed(self, frame: Frame) -> None:
        if frame.type == "error":
            said = frame.text("message") or "the run failed"
            self._failure = f"Interrupted: {said}" if frame.data.get("code") == "interrupted" else said
            self.line = f"Failed: {short(self._failure, 200)}"
        elif frame.type == "cancelled":
            self.line = "Stopped"

    def chunks(self) -> list[Chunk]:
        """What the run cost, and the error. It comes as a chunk: an exception would take all that was shown with it."""
        found: list[Chunk] = []
        total = self._story.input_tokens + self._story.output_tokens
        if total and self._usage:
            usage = {"input_tokens": self._story.input_tokens, "output_tokens": self._story.output_tokens}
            found.append({"type": "response.completed", "response": {"usage": {**usage, "total_tokens": total}}})
        if self._failure:
            found.append({"error": {"message": self._failure}})
        return found


# --- session_id -------------------------------------------------------------------------------------------------------
# The session of the server that a chat is.


SESSION_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


def session_of(user: Json, metadata: Json) -> str:
    """A chat of a user is one; another user of the same chat has another. "" if there is no chat."""
    user_id, chat_id = str(user.get("id") or "user"), str(metadata.get("chat_id") or "")
    if not chat_id:
        return ""
    if chat_id.startswith("channel:"):  # where every mention is a question of its own, and all may come at once
        chat_id = f"{chat_id}.{metadata.get('message_id') or uuid.uuid4().hex}"
    plain = f"{user_id}.{chat_id}"
    if SESSION_ID.fullmatch(plain) and "." not in user_id:
        return plain
    # What cannot be an id as it is must not become that of another chat.
    return hashlib.sha256(f"{user_id}\0{chat_id}".encode(errors="replace")).hexdigest()


# --- side_tasks -------------------------------------------------------------------------------------------------------
# Open WebUI's own chores (titles, tags, …), done without the agent: a run for each would be slow and dear.


NO_MERGING = "The Deep Agent Pipe cannot merge answers: take one of them, or merge with another model."


def first_question(messages: list[Json]) -> str:
    for message in messages:
        if message.get("role") == "user":
            return " ".join(text_of(message.get("content")).split())
    return ""


def answer_to_task(task: str, body: Json) -> str:
    """The reply in the form that Open WebUI wants for this chore; "" for those that can do without."""
    if task == "title_generation":
        question = first_question(as_objects(body.get("messages")))
        return json.dumps({"title": question[:60] or "New chat"}, ensure_ascii=False)
    if task == "moa_response_generation":
        return NO_MERGING
    empty = {"tags_generation": "tags", "follow_up_generation": "follow_ups", "query_generation": "queries"}
    return json.dumps({empty[task]: []}) if task in empty else ""


# --- todos ------------------------------------------------------------------------------------------------------------
# The agent's list of things to do, as Open WebUI's own task list above the input.


class Todos:
    """Shown while the agent works. Open WebUI keeps the list for the next turn, so the end takes it away."""

    def __init__(self) -> None:
        self._shown = False

    def feed(self, frame: Frame) -> list[Json]:
        todos = as_objects(frame.data.get("items")) if frame.type == "plan" and is_main(frame) else []
        if not todos:
            return []
        self._shown = True
        tasks = [
            {"id": str(number), "content": str(todo.get("content", "")), "status": str(todo.get("status", "pending"))}
            for number, todo in enumerate(todos, 1)
        ]
        return [tasks_event(tasks)]

    def end(self) -> Json | None:
        return tasks_event([]) if self._shown else None


def tasks_event(tasks: list[dict[str, str]]) -> Json:
    return {"type": "chat:message:tasks", "data": {"tasks": tasks}}


# --- truncation -------------------------------------------------------------------------------------------------------
# A conversation that a request can carry. Open WebUI sends all of it each time, with every result and every image.


REQUEST_BYTES = 8_000_000
"""The server takes 10 MiB, unless it is told otherwise."""
OLD_RESULT_CHARS = 4_000
LEFT_OUT: Json = {"role": "system", "content": "The conversation is too long: its beginning was left out."}


def fitting(messages: list[Json]) -> list[Json]:
    """Within the limit as it is. Otherwise the oldest give way first: results, then images, then whole turns."""
    over = sum(map(_size, messages)) - REQUEST_BYTES
    found, question = list(messages), _last_question(messages)
    for lighter in (_short_result, _without_images):
        over = _lighten(found, question, over, lighter)
    return found if over <= 0 else _newest(found, question, over)


def _lighten(messages: list[Json], end: int, over: int, lighter: Callable[[Json], Json]) -> int:
    """Make messages before the end lighter until nothing is over; what still is."""
    for place, message in enumerate(messages[:end]):
        if over <= 0:
            break
        messages[place] = lighter(message)
        if messages[place] is not message:
            over -= _size(message) - _size(messages[place])
    return over


def _short_result(message: Json) -> Json:
    content = message.get("content")
    if message.get("role") != "tool" or not isinstance(content, str) or len(content) <= OLD_RESULT_CHARS:
        return message
    return {**message, "content": f"{content[:OLD_RESULT_CHARS]}\n\n… (cut: {len(content):,} characters in all)"}


def _without_images(message: Json) -> Json:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    parts = as_objects(content)
    texts = [part for part in parts if part.get("type") == "text"]
    gone: Json = {"type": "text", "text": "(an image that is not sent any more)"}
    return message if len(texts) == len(parts) else {**message, "content": [*texts, gone]}


def _newest(messages: list[Json], question: int, over: int) -> list[Json]:
    """Without the first turns. One is left out whole: a result without its call would be refused."""
    start = 0
    while over > 0 and start < question:
        over -= _size(messages[start])
        start += 1
    while start < question and messages[start].get("role") != "user":
        start += 1
    systems = [message for message in messages[:start] if message.get("role") == "system"]
    return [*systems, LEFT_OUT, *messages[start:]] if start else messages


def _last_question(messages: list[Json]) -> int:
    """The place of the last message of the user, which is never touched."""
    return max((place for place, message in enumerate(messages) if message.get("role") == "user"), default=0)


def _size(message: Json) -> int:
    return len(json.dumps(message)) + 2


# --- request ----------------------------------------------------------------------------------------------------------
# The request to the server: which agent, which session, which messages.


def request_of(body: Json, user: Json, metadata: Json) -> Json:
    """The body of `POST /chat/stream`."""
    messages = continued(apart(as_objects(body.get("messages")), metadata), metadata)
    request: Json = {"messages": fitting(cleaned(messages)), "stream": True}
    if agent := agent_of(str(body.get("model", ""))):
        request["agent"] = agent
    if session := session_of(user, metadata):
        request["chat_id"] = session
    # The question's id comes first: by it another model's run for the same question is known.
    question = metadata.get("user_message_id") or metadata.get("message_id") or ""
    request["request_id"] = f"{question}.{uuid.uuid4().hex}"[-200:]
    return request


# --- valves -----------------------------------------------------------------------------------------------------------
# What an administrator and a user can choose.


class Valves(BaseModel):
    DEEP_AGENT_URL: str = Field(
        "http://localhost:8000", description="Address of the Limelight server, as Open WebUI's server reaches it."
    )
    API_KEY: str = Field(
        "",
        description="The server's API key. With it each user of Open WebUI has sessions of their own there.",
        json_schema_extra={"input": {"type": "password"}},
    )
    DISPLAY: Literal["native", "collapse", "details", "plain"] = Field(
        "native",
        description="`native`: a live row for each tool. `collapse`: one block with all steps. "
        "`details`: a block for each finished tool, for Open WebUI before 0.8. `plain`: the answer alone.",
    )
    SHOW_TOOL_CITATIONS: bool = Field(True, description="List tool results as sources below the answer.")
    SHOW_SUBAGENT_STATUS: bool = Field(True, description="Tell in the status line what sub-agents do.")
    REQUEST_TIMEOUT: int = Field(
        300, gt=0, description="Seconds without any sign of life before the connection counts as lost."
    )
    RECONNECT_SECONDS: int = Field(120, ge=0, description="How long to try to get a lost connection back.")
    PUBLIC_URL: str = Field(
        "", description="Address of the server as a browser reaches it, for links to files and to very long results."
    )

    @field_validator("DEEP_AGENT_URL", "API_KEY", "PUBLIC_URL")
    @classmethod
    def _as_it_was_meant(cls, value: str) -> str:
        """What is pasted brings spaces and line breaks along."""
        return value.strip()


class UserValves(BaseModel):
    DISPLAY: Literal["default", "native", "collapse", "details", "plain"] = Field(
        "default", description="How an agent's work is shown; `default` is what the administrator chose."
    )
    TOOL_CITATIONS: Literal["default", "show", "hide"] = Field(
        "default", description="Tool results as sources below the answer."
    )
    SUBAGENT_STATUS: Literal["default", "show", "hide"] = Field(
        "default", description="What sub-agents do, in the status line."
    )


class Choices(NamedTuple):
    """What is shown to this user: their own valves over the administrator's."""

    display: str
    citations: bool
    subagent_status: bool

    @classmethod
    def of(cls, valves: Valves, user: Any) -> "Choices":
        def pick(name: str, default: Any) -> Any:
            chosen = getattr(user, name, "default")
            return default if chosen == "default" else {"show": True, "hide": False}.get(chosen, chosen)

        return cls(
            pick("DISPLAY", valves.DISPLAY),
            pick("TOOL_CITATIONS", valves.SHOW_TOOL_CITATIONS),
            pick("SUBAGENT_STATUS", valves.SHOW_SUBAGENT_STATUS),
        )


# --- citations --------------------------------------------------------------------------------------------------------
# What is listed below the answer: results of tools, and what the agent cites.


CITATION_CHARS = 32_000
MESSAGE_CHARS = 256_000
"""All citations of a message together: the whole chat is stored anew with each of them."""
PREVIEW_OF_CITATION = 500


class Citations:
    """Open WebUI groups sources by their key, so each has one of its own."""

    def __init__(self, story: Story, run_id: Callable[[], str], choices: Choices) -> None:
        self._story = story
        self._run_id = run_id
        self._tools = choices.citations
        self._count = 0
        self._room = MESSAGE_CHARS

    def feed(self, frame: Frame) -> list[Json]:
        match frame.type:
            case "tool_end" if (call := self._story.call(frame)) and self._tools:
                return self._of_call(call)
            case "citation":
                return [self._cited(frame.text("title"), frame.text("url"), frame.text("text"))]
            case "answer":
                sources = frame.data.get("sources")
                found = cast(list[Any], sources) if isinstance(sources, list) else []
                return [self._cited("", str(source), "") for source in found]
            case _:
                return []

    def _of_call(self, call: Call) -> list[Json]:
        if call.error is not None or not call.result_seen or not call.output.strip():
            return []
        key = str(CallKey(self._run_id(), call.depth, call.name, call.tool_id))
        return [self._source(key, f"🔧 {call.title}", call.output, literal, {"parameters": self._parameters(call)})]

    def _parameters(self, call: Call) -> Json:
        """What has no room is in the row, if anywhere."""
        if len(call.args) <= min(CITATION_CHARS, self._room):
            self._room -= len(call.args)
            return call.parameters
        return {"arguments": f"{call.args[:PREVIEW_OF_CITATION]}… ({len(call.args):,} characters in all)"}

    def _cited(self, title: str, url: str, text: str) -> Json:
        self._count += 1
        key = url if url.startswith(("http://", "https://")) else f"{self._run_id()}.s{self._count}"
        return self._source(key, title or url, text or title or url, parted, {})

    def _source(self, key: str, name: str, text: str, tamed: Callable[[str], str], more: Json) -> Json:
        """Open WebUI draws a source as markdown and HTML, so what somebody else has written is tamed."""
        limit = CITATION_CHARS if min(len(text), CITATION_CHARS) <= self._room else PREVIEW_OF_CITATION
        shown = tamed(text[:limit])
        if len(text) > limit:
            shown = f"{shown}\n\n… ({len(text):,} characters in all)"
        self._room = max(0, self._room - len(shown))
        return source_event(key, name, shown, more)


def source_event(key: str, name: str, text: str, more: Json) -> Json:
    source: Json = {"id": key, "name": name}
    if key.startswith("http"):
        source["url"] = key
    metadata = {"source": key, "name": name, **more}
    return {"type": "source", "data": {"source": source, "document": [text], "metadata": [metadata]}}


# --- headers ----------------------------------------------------------------------------------------------------------
# What every request to the server carries: the key, and for whom it is. A key that cannot be sent is never shown.


class Unusable(Exception):
    """A valve has a value that no request can carry."""


def headers_of(valves: Valves, user: Json) -> dict[str, str]:
    """Without a key nobody is named: the server would not believe it. Raises Unusable."""
    key = valves.API_KEY
    if not key:
        return {}
    if not (key.isascii() and key.isprintable()):
        raise Unusable(
            "the valve API_KEY of the Deep Agent Pipe has a sign that no key can have, "
            "like a line break, an accent or a quotation mark of a word processor: type the key again"
        )
    return {
        "Authorization": f"Bearer {key}",
        "X-Limelight-User-Id": quote(str(user.get("id") or ""), safe="", errors="replace"),
        "X-Limelight-User-Name": quote(str(user.get("name") or ""), safe="", errors="replace"),
    }


# --- server -----------------------------------------------------------------------------------------------------------
# The Limelight server, as one user sees it during one call of the pipe. The only part that talks to it.


PASSING = (502, 503, 504)
"""What a proxy says while the server behind it starts again."""


class Refused(Exception):
    """The server answered, and the answer was no."""

    def __init__(self, status: int, problem: Json) -> None:
        super().__init__(str(problem.get("detail") or problem.get("title") or f"status {status}"))
        self.status = status
        self.code = str(problem.get("code", ""))
        self.problem = problem


class Lost(Exception):
    """The server cannot be reached, or not any more."""


class Server:
    """A Limelight server, as one user sees it during one call of the pipe."""

    def __init__(self, valves: Valves, user: Json) -> None:
        self.url = valves.DEEP_AGENT_URL.rstrip("/")
        self.run_id = ""
        self.as_user = f" --user {user.get('id') or ''}" if valves.API_KEY else ""
        """How a command at a terminal says for whom it acts."""
        self._valves = valves
        self._user = user
        self._http: httpx.AsyncClient | None = None

    async def __aenter__(self) -> "Server":
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._http is not None:
            await self._http.aclose()

    async def call(self, method: str, path: str, body: Json | None = None, seconds: float = 10) -> Any:
        """One call. Raises Refused and Lost."""
        http = await self._client()
        try:
            response = await http.request(method, f"{self.url}{path}", timeout=seconds, **content_of(body))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Lost(f"{self.url} cannot be reached ({describe(error)})") from error
        if response.status_code >= 400:
            refused = Refused(response.status_code, problem_of(response.content))
            if refused.status in PASSING:
                raise Lost(f"{self.url} cannot be reached ({refused})")
            raise refused
        try:
            return response.json()
        except ValueError as error:
            raise self._stranger(response) from error

    async def fetch(self, path: str, limit: int) -> bytes | None:
        """The body of a GET, or None if it is over the limit or cannot be had."""
        found = bytearray()
        try:
            http = await self._client()
            async with http.stream("GET", located(self.url, path), timeout=30) as response:
                if response.status_code != 200:
                    return None
                async for piece in response.aiter_bytes():
                    found += piece
                    if len(found) > limit:
                        return None
        except (httpx.HTTPError, httpx.InvalidURL, Lost):
            return None
        return bytes(found)

    async def fetch_object(self, path: str, limit: int) -> Json:
        """The same as a JSON object; an empty one if it cannot be had."""
        try:
            return as_object(json.loads(await self.fetch(path, limit) or b"{}"))
        except ValueError:
            return {}

    @contextlib.asynccontextmanager
    async def open(self, path: str, body: Json | None, cursor: str) -> AsyncGenerator[httpx.Response, None]:
        """A stream: POST if there is a body, else GET behind the cursor; status 204 is one that is over.

        Raises Refused and Lost, and what httpx raises."""
        method = "GET" if body is None else "POST"
        http = await self._client()
        async with http.stream(method, f"{self.url}{path}", **content_of(body, cursor)) as response:
            if response.status_code >= 400:
                raise Refused(response.status_code, problem_of(await response.aread()))
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if response.status_code != 204 and (response.status_code, kind) != (200, "text/event-stream"):
                raise self._stranger(response)
            yield response

    def _stranger(self, response: httpx.Response) -> Lost:
        kind = response.headers.get("content-type", "no content type")
        says = f"{self.url} does not answer like a Limelight server (status {response.status_code}, {kind})"
        return Lost(f"{says}: is the valve DEEP_AGENT_URL right?")

    async def _client(self) -> httpx.AsyncClient:
        """Made when it is needed, because what is wrong with a valve is told like all that goes wrong. Raises Lost."""
        if self._http is None:
            try:
                headers, verify = headers_of(self._valves, self._user), await trust(self.url)
            except Unusable as error:
                raise Lost(f"The Limelight server cannot be asked: {error}.") from error
            except OSError as error:
                raise Lost(f"SSL_CERT_FILE or SSL_CERT_DIR of Open WebUI cannot be read: {error}") from error
            timeout = httpx.Timeout(10, read=self._valves.REQUEST_TIMEOUT)
            # Proxies of the environment are for the internet; the agents' server is a neighbour.
            self._http = httpx.AsyncClient(headers=headers, timeout=timeout, verify=verify, trust_env=False)
        return self._http


def describe(error: Exception) -> str:
    """In words for a chat. What is wrong with a header is not told: the words would hold the key."""
    names = {"ConnectError": "no connection", "ConnectTimeout": "no answer", "ReadTimeout": "no sign of life"}
    names["LocalProtocolError"] = "a valve holds what no request can carry"
    return names.get(type(error).__name__, str(error) or type(error).__name__)


def advice(error: Exception) -> str:
    """What went wrong, and what to do about it."""
    if isinstance(error, Refused):
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


# --- approvals --------------------------------------------------------------------------------------------------------
# Approvals: the person in the chat is asked, and the server is told.


ASK_AGAIN_SECONDS = 5
ARGUMENT_BYTES = 1_000_000
"""Nobody reads more than this in a dialog."""


class Asker:
    """Asks one question at a time. What was decided comes back as a frame like any other, from here or elsewhere."""

    def __init__(
        self, server: Server, ask: Ask | None, news: Callable[[Frame], Awaitable[None]], metadata: Json
    ) -> None:
        self._server = server
        self._dialog = Dialog(ask, metadata)
        self._news = news
        self._turn = asyncio.Lock()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def feed(self, frame: Frame) -> None:
        if frame.type != "approval":
            return
        approval_id = frame.text("approval_id")
        if frame.data.get("state") != "requested":
            if task := self._tasks.pop(approval_id, None):
                task.cancel()  # which takes the dialog away too
        elif approval_id not in self._tasks:
            self._tasks[approval_id] = asyncio.create_task(self._settle(approval_id, frame))

    async def close(self) -> None:
        tasks, self._tasks = list(self._tasks.values()), {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _settle(self, approval_id: str, frame: Frame) -> None:
        """Ask until there is an answer that the server takes. It knows when the time is over, and says so."""
        problem, told = "", False
        async with self._turn:
            while True:
                frame = await self._whole(frame)
                cut = frame.data.get("truncated")  # nobody is asked to approve what they cannot see
                decision = None if cut else await self._dialog.decision(frame, problem)
                problem = await self._decide(approval_id, decision) if decision else ""
                if decision and not problem:
                    return
                if not decision:
                    if not told:
                        await self._tell_where(frame)
                    told = True
                    await asyncio.sleep(ASK_AGAIN_SECONDS)

    async def _whole(self, frame: Frame) -> Frame:
        """With all arguments in place of their beginning, if they can be had."""
        if not frame.data.get("truncated") or frame.number("size") > ARGUMENT_BYTES:
            return frame
        found = await self._server.fetch_object(self._path(frame.text("approval_id")), 2 * ARGUMENT_BYTES)
        if "args" not in found:
            return frame
        return frame._replace(data={**frame.data, "args": found["args"], "truncated": False})

    def _path(self, approval_id: str) -> str:
        return f"/runs/{self._server.run_id}/approvals/{quote(approval_id, safe='')}"

    async def _tell_where(self, frame: Frame) -> None:
        command = f"limelight approve {self._server.run_id}{self._server.as_user}"
        where = f"waiting for approval: answer here, or run `{command}`"
        if frame.data.get("truncated"):
            where = f"waiting for approval, but its arguments cannot be shown here: run `{command}`"
        about = {key: frame.text(key) for key in ("approval_id", "tool_id", "name")}
        await self._news(Frame("_unanswered", {**about, "where": where}))

    async def _decide(self, approval_id: str, decision: Json) -> str:
        """Send it; what the server has against it, or ""."""
        try:
            await self._server.call("POST", self._path(approval_id), decision)
        except Refused as refused:
            settled = refused.code in ("already_decided", "expired") or refused.status == 404
            return "" if settled else str(refused)
        except Lost as lost:
            return str(lost)
        return ""


# --- full_values ------------------------------------------------------------------------------------------------------
# What a frame only points to is fetched: whole values in place of previews, the bytes of small images.


INLINE_BYTES = 100_000
ANSWER_BYTES = 1_000_000
"""An answer is what the person came for, so it may be longer than what a tool says."""
SVG = "image/svg+xml"
TEXTS = frozenset({"application/json", "application/x-yaml", "application/xml", "application/javascript", SVG})


class Fetcher:
    """Completes frames before they are shown. What is too large stays where it is, and a link says where that is."""

    def __init__(self, server: Server, public_url: str) -> None:
        self._server = server
        self._public_url = public_url.rstrip("/")
        self._image_room = MESSAGE_BYTES

    async def complete(self, frame: Frame) -> Frame:
        cut = bool(frame.data.get("truncated"))
        match frame.type:
            case "tool_end" if cut:
                return await self._text_of(frame, "result", INLINE_BYTES)
            case "token" if cut:
                return await self._text_of(frame, "content", ANSWER_BYTES)
            case "tool_start" if cut:
                return await self._args_of(frame, "args", "args")
            case "tool_args" if cut:
                return await self._args_of(frame, "content", "args")
            case "approval" if cut and frame.data.get("state") == "edit":
                return await self._args_of(frame, "args", "edited_args")
            case "artifact":
                return await self._file(frame)
            case "gap":
                count = frame.number("to") - frame.number("from") + 1
                return Frame("status", {"description": f"{count:,} events are no longer kept"}, frame.cursor)
            case _:
                return frame

    async def _text_of(self, frame: Frame, key: str, limit: int) -> Frame:
        path, size = frame.text("result_url"), frame.number("size")
        whole = await self._server.fetch(f"{path}?raw=1", limit) if size <= limit else None
        note = self._note(path, size, "?raw=1")
        text = f"{frame.text(key)}\n\n{note}" if whole is None else whole.decode(errors="replace")
        return frame._replace(data={**frame.data, key: text})

    async def _args_of(self, frame: Frame, key: str, name: str) -> Frame:
        """Arguments are JSON, also those that stay cut."""
        path, size = frame.text("result_url"), frame.number("size")
        # The route tells of more than the arguments, such as the result of the same call.
        found = await self._server.fetch_object(path, 10 * INLINE_BYTES) if size <= INLINE_BYTES else {}
        cut = {"arguments": frame.text(key), "cut": self._note(path, size)}
        return frame._replace(data={**frame.data, key: found.get(name) or cut})

    def _note(self, path: str, size: int, query: str = "") -> str:
        where = located(self._public_url, path + query) if self._public_url else f"{path} on the Limelight server"
        length = f"{size:,} bytes in all; " if size else ""
        return f"… ({length}the whole is at {where})"

    async def _file(self, frame: Frame) -> Frame:
        """A small image becomes `_image` with its bytes in a data URL, the rest `_file` with its text or a link."""
        kind = frame.text("media_type").partition(";")[0].strip().lower()
        path, size = frame.text("url"), frame.number("size")
        about: dict[str, Any] = {"tool_id": frame.text("tool_id"), "name": frame.text("name") or "file", "size": size}
        if kind.startswith("image/") and kind != SVG and (image := await self._image(path, size)):
            return Frame("_image", {**about, "url": image})
        text = await self._text(path, kind) if size <= INLINE_BYTES else None
        if text is None and not self._public_url:  # the address that the pipe uses is no use to a browser
            kind, text = "text/plain", f"{about['name']}: {size:,} bytes, at {path} on the Limelight server"
        return Frame("_file", {**about, "url": located(self._public_url, path), "media_type": kind, "content": text})

    async def _image(self, path: str, size: int) -> str | None:
        room = min(IMAGE_BYTES, self._image_room)
        found = await self._server.fetch(path, room) if size <= room else None
        kind = image_kind(found) if found else None
        if found is None or kind is None:
            return None
        self._image_room -= len(found)
        return f"data:{kind};base64,{base64.b64encode(found).decode()}"

    async def _text(self, path: str, kind: str) -> str | None:
        """What a text file says, which Open WebUI shows in a window of its own."""
        if not kind.startswith("text/") and kind not in TEXTS:
            return None
        found = await self._server.fetch(path, INLINE_BYTES)
        return None if found is None else found.decode(errors="replace")


# --- live_run ---------------------------------------------------------------------------------------------------------
# What becomes of a run that is live in a chat when the next question comes.


LIVE = ("queued", "running", "waiting")
FOLLOWED: set[str] = set()
"""The requests whose runs somebody looks at in this process."""


@contextlib.asynccontextmanager
async def followed(request: Json) -> AsyncGenerator[None, None]:
    FOLLOWED.add(request["request_id"])
    try:
        yield
    finally:
        FOLLOWED.discard(request["request_id"])


async def live_run(server: Server, request: Json) -> Json | None:
    """The run that is live in the chat of this request. Raises Lost."""
    try:
        session = await server.call("GET", f"/sessions/{request['chat_id']}")
        run = as_object(await server.call("GET", f"/runs/{session['run_id']}"))
    except (Refused, KeyError, TypeError):
        return None
    return run if run.get("state") in LIVE else None


async def own_run(server: Server, request: Json) -> str:
    """The run that this request began, if Stop was faster than the server's answer, else "". Raises Lost."""
    run = await live_run(server, request)
    return str(run["run_id"]) if run is not None and run.get("request_id") == request["request_id"] else ""


async def turn_of(server: Server, request: Json) -> str:
    """`wait` for a run that answers the same question (two models side by side). `cancel` one that answers another:
    the chat has gone on without it. `error` if it cannot be told which, so that the caller asks again."""
    try:
        run = await live_run(server, request)
        if run is None:
            return "error"
        return "wait" if await _is_beside(server, request, run) else "cancel"
    except Lost:
        return "error"


async def _is_beside(server: Server, request: Json, run: Json) -> bool:
    """Whether a run is that of another model. One of the same agent at which nobody looks was left behind when Open
    WebUI was ended in the middle, and the question is asked again. Raises Lost."""
    question, run_request = str(request["request_id"]).partition(".")[0], str(run.get("request_id", ""))
    if not question or not run_request.startswith(f"{question}."):
        return False
    return run_request in FOLLOWED or run.get("agent") != await _agent(server, request)


async def _agent(server: Server, request: Json) -> str:
    """By its name, also if it is the default one. Raises Lost."""
    if "agent" in request:
        return str(request["agent"])
    try:
        agents = as_objects(as_object(await server.call("GET", "/agents")).get("agents"))
    except Refused:
        agents = []
    return next((str(agent.get("name")) for agent in agents if agent.get("default")), "")


# --- cancellation -----------------------------------------------------------------------------------------------------
# Stop: the server is told, also when it cannot be reached at once, and when whoever asked for it is gone.


STOP_SECONDS = 10.0
STOP_PAUSE = 0.5
STOPPED = "Stopped"
STOPPED_HERE = "Stopped here; the server was not reached, so the agent may go on"
UNDER_WAY: set[asyncio.Task[bool]] = set()
"""The loop alone would not keep them alive."""


async def stop(valves: Valves, user: Json, run_id: str, request: Json) -> bool:
    """Stop the run that a request began; whether the server was told. Who waits for it may be cancelled meanwhile."""
    task = asyncio.create_task(_stop(valves, user, run_id, request))
    UNDER_WAY.add(task)
    task.add_done_callback(UNDER_WAY.discard)
    return await asyncio.shield(task)


async def _stop(valves: Valves, user: Json, run_id: str, request: Json) -> bool:
    try:
        async with asyncio.timeout(STOP_SECONDS), Server(valves, user) as server:
            while True:
                if await _told(server, run_id, request):
                    return True
                await asyncio.sleep(STOP_PAUSE)
    except (TimeoutError, Refused):
        return False


async def _told(server: Server, run_id: str, request: Json) -> bool:
    """Whether there is nothing more to say. Raises Refused."""
    try:
        run_id = run_id or await own_run(server, request)
        if run_id:
            await server.call("POST", f"/runs/{run_id}/cancel", {"reason": "stopped in Open WebUI"}, 5)
    except Lost:
        return False
    except Refused as refused:
        if refused.status != 404:  # a run that is gone does not go on
            raise
    return True


# --- run_stream -------------------------------------------------------------------------------------------------------
# A run from its first frame to its last, whatever happens to the connection.


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


# --- status -----------------------------------------------------------------------------------------------------------
# The line above the text.


STATUSES_AT_ONCE = 5
"""Of more than these, which come together, nobody could read but the last."""


class StatusLine:
    """What goes on now. The last line says how it ended, so that it comes to rest."""

    def __init__(self, choices: Choices) -> None:
        self._subagents = choices.subagent_status
        self._last = ""
        self._before = ""
        """What went on when the connection was lost."""
        self._waiting: dict[str, str] = {}
        """What was said of each approval that is open; "" of those of sub-agents of which nothing is told."""

    def feed(self, frame: Frame) -> list[Json]:
        text = self._line(frame)
        return [] if text in ("", self._last) else [self._status(text, done=False)]

    def end(self, text: str) -> Json:
        return self._status(text, done=True)

    def _status(self, text: str, *, done: bool) -> Json:
        self._last = text
        return {"type": "status", "data": {"description": text, "done": done}}

    def _line(self, frame: Frame) -> str:
        depth = frame.number("depth") or frame.number("agent_depth")
        if frame.type in ("approval", "_unanswered"):
            return self._approval(frame, depth)
        return self._indented(self._text(frame), depth)

    def _indented(self, text: str, depth: int) -> str:
        if depth and not self._subagents:
            return ""
        return "↳ " * depth + text if text else ""

    def _approval(self, frame: Frame, depth: int) -> str:
        """That it waits. Once it is decided, what else waits, or else what becomes of it."""
        approval_id, name, state = frame.text("approval_id"), frame.text("name"), frame.data.get("state")
        if state == "requested":
            self._waiting[approval_id] = self._indented(f"⏸ {name} is waiting for approval", depth)
            return self._waiting[approval_id]
        if frame.type == "_unanswered":
            if approval_id in self._waiting:  # otherwise it was decided meanwhile
                self._waiting[approval_id] = f"⏸ {name} · {frame.text('where')}"
            return self._waiting.get(approval_id, "")
        if not self._waiting.pop(approval_id, ""):
            return ""
        others = [text for text in self._waiting.values() if text]
        decided = f"🚫 {name} was rejected" if state == "reject" else f"🔧 {name}..."
        return others[-1] if others else "↳ " * depth + decided

    def _text(self, frame: Frame) -> str:
        match frame.type:
            case "status":
                return frame.text("description")
            case "tool_start":
                return f"🔧 {frame.text('name') or 'unknown'}..."
            case "agent_start":
                return f"🤖 Sub-agent: {frame.text('name')}..."
            case "plan":
                return plan_line(as_objects(frame.data.get("items")))
            case "_waiting":
                return "Waiting for the answer of the other model..."
            case "_lost":
                self._before = self._before or self._last
                return f"Connection lost ({frame.text('reason')}), reconnecting..."
            case "_found":
                before, self._before = self._before, ""
                return before
            case _:
                return ""


def plan_line(todos: list[Json]) -> str:
    """How far the list is, and what is being done."""
    if not todos:
        return "📋 Planning..."
    done = sum(todo.get("status") == "completed" for todo in todos)
    now = next((str(todo.get("content", "")) for todo in todos if todo.get("status") == "in_progress"), "")
    return f"📋 {done}/{len(todos)} done" + (f": {short(now)}" if now else "")


def thinned(events: list[Json]) -> list[Json]:
    """Events that came together, with the last status only if there are many: each is a write to the database."""
    places = [place for place, event in enumerate(events) if event["type"] == "status"]
    passed = places[:-1] if len(places) > STATUSES_AT_ONCE else []
    return [event for place, event in enumerate(events) if place not in passed]


# --- run_view ---------------------------------------------------------------------------------------------------------
# All that hears the frames of one run: what is drawn, told, listed and asked. It sends nothing itself.


LOG = logging.getLogger("deep_agent_pipe")


class Scene:
    """What one part makes of a frame, or fails to make of it, does not keep the others from it."""

    def __init__(self, server: Server, choices: Choices, public_url: str, asker: Asker) -> None:
        story = Story()
        self.ending = Ending(story, usage=choices.display != TEXT)
        self._fetcher = Fetcher(server, public_url)
        self._display = display_of(choices.display, story, lambda: server.run_id)
        self._files = Files(story, images_in_rows=choices.display == "native")
        self._status = StatusLine(choices)
        self._todos = Todos()
        self._hearers = (story, self._display, self.ending, self._files, asker)
        self._tellers = (self._status, self._todos, Citations(story, lambda: server.run_id, choices))

    async def hear(self, frame: Frame) -> list[Json]:
        """One frame; the events that it gives rise to."""
        events: list[Json] = []
        with _skipping(frame.type):
            frame = await self._fetcher.complete(frame)
        for hearer in self._hearers:
            with _skipping(frame.type):
                hearer.feed(frame)
        for teller in self._tellers:
            with _skipping(frame.type):
                events += teller.feed(frame)
        return events

    def drawn(self) -> list[Chunk]:
        """What has changed in the message since the last time."""
        return self._display.flush()

    def close(self) -> list[Chunk]:
        """The last chunks. Whatever fails here, the rest of them still come."""
        chunks: list[Chunk] = []
        with _skipping("close"):
            self._display.close()
        with _skipping("flush"):
            chunks += self._display.flush()
        return [*chunks, *self.ending.chunks()]

    def farewell(self) -> list[Json]:
        """The last events."""
        events = [self._files.end(), self._todos.end(), self._status.end(self.ending.line)]
        return [event for event in events if event is not None]


@contextlib.contextmanager
def _skipping(what: str) -> Generator[None]:
    try:
        yield
    except Exception:  # raised, it would take all that was shown with it
        LOG.warning("The Deep Agent Pipe could not show something (%s) and goes on without it", what, exc_info=True)


# --- turn -------------------------------------------------------------------------------------------------------------
# One call of the pipe: one run, followed from its first frame to its last.


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


# --- pipe -------------------------------------------------------------------------------------------------------------
# What Open WebUI sees.


NAME = "Deep Agent Pipe"


class Pipe:
    """One instance serves all users and chats, so it keeps nothing of any of them."""

    Valves = Valves
    UserValves = UserValves

    def __init__(self) -> None:
        self.type = "manifold"
        self.name = NAME
        self.valves = Valves.model_validate({})

    async def pipes(self) -> list[dict[str, str]]:
        """Every agent of the server as a model; if it is down, the default one, which says so when it is used."""
        default = {"id": DEFAULT_MODEL, "name": ""}
        try:
            async with Server(self.valves, {}) as server:
                agents = as_objects((await server.call("GET", "/agents", seconds=3))["agents"])
                others = [str(agent["name"]) for agent in agents if not agent.get("default")]
        except Exception:  # raised, it would take all models of the pipe away, and nobody would be told why
            return [default]
        return [default, *({"id": model_of(name), "name": f" · {name}"} for name in others)]

    async def pipe(
        self,
        body: Json,
        __user__: Json | None = None,
        __metadata__: Json | None = None,
        __task__: str | None = None,
        __task_body__: Json | None = None,
        __event_emitter__: Emit | None = None,
        __event_call__: Ask | None = None,
    ) -> str | AsyncGenerator[Chunk, None]:
        if __task__:
            return answer_to_task(str(__task__), __task_body__ or body)
        if goes_round(as_objects(body.get("messages")), __metadata__ or {}):
            return ""
        performance = Performance(
            self.valves, body, __user__ or {}, __metadata__ or {}, __event_emitter__, __event_call__
        )
        return performance.stream() if body.get("stream") else await performance.whole()
