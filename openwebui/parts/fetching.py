"""What a frame only points to is fetched: whole results in place of previews, the bytes of small images."""

import base64

from openwebui.parts.frames import Frame
from openwebui.parts.server import Server

INLINE_BYTES = 100_000
IMAGE_BYTES = 1_000_000
TEXTS = frozenset({"application/json", "application/x-yaml", "application/xml", "application/javascript"})


class Fetcher:
    """Completes frames before they are shown. What is too large stays where it is, and a link says where that is."""

    def __init__(self, server: Server, public_url: str) -> None:
        self._server = server
        self._public_url = public_url.rstrip("/")

    async def complete(self, frame: Frame) -> Frame:
        match frame.type:
            case "tool_end" if frame.data.get("truncated"):
                return await self._whole(frame, "result")
            case "token" if frame.data.get("truncated"):
                return await self._whole(frame, "content")
            case "artifact":
                return await self._file(frame)
            case _:
                return frame

    async def _whole(self, frame: Frame, key: str) -> Frame:
        path, size = frame.text("result_url"), frame.number("size")
        whole = await self._server.fetch(f"{path}?raw=1", INLINE_BYTES) if size <= INLINE_BYTES else None
        if whole is not None:
            return frame._replace(data={**frame.data, key: whole.decode(errors="replace")})
        where = f"{self._public_url}{path}?raw=1" if self._public_url else f"{path} on the Limelight server"
        length = f"{size:,} bytes in all; " if size else ""
        note = f"… ({length}the whole is at {where})"
        return frame._replace(data={**frame.data, key: f"{frame.text(key)}\n\n{note}"})

    async def _file(self, frame: Frame) -> Frame:
        """A small image becomes `_image` with its bytes in a data URL, the rest `_file` with its text or a link."""
        kind, path, size = frame.text("media_type"), frame.text("url"), frame.number("size")
        about = {"tool_id": frame.text("tool_id"), "name": frame.text("name") or "file", "size": size}
        if kind.startswith("image/") and size <= IMAGE_BYTES:
            found = await self._server.fetch(path, IMAGE_BYTES)
            if found is not None:
                return Frame("_image", {**about, "url": f"data:{kind};base64,{base64.b64encode(found).decode()}"})
        link = f"{self._public_url or self._server.url}{path}"
        text = await self._text(path, kind) if size <= INLINE_BYTES else None
        return Frame("_file", {**about, "url": link, "media_type": kind, "content": text})

    async def _text(self, path: str, kind: str) -> str | None:
        """What a text file says, which Open WebUI shows in a window of its own."""
        if not kind.startswith("text/") and kind not in TEXTS:
            return None
        found = await self._server.fetch(path, INLINE_BYTES)
        return None if found is None else found.decode(errors="replace")
