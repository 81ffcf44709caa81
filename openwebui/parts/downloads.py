"""Downloads the data that frames link to: complete values instead of previews, images and files."""

import base64
from typing import Any

from openwebui.parts.frames import Frame, Json
from openwebui.parts.run_state import RunState
from openwebui.parts.server_client import LimelightClient, join_url

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
