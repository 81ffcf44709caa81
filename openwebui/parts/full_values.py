"""What a frame only points to is fetched: whole values in place of previews, the bytes of small images."""

import base64
from typing import Any

from openwebui.parts.frames import Frame
from openwebui.parts.images import IMAGE_BYTES, MESSAGE_BYTES, image_kind
from openwebui.parts.links import located
from openwebui.parts.server import Server

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
