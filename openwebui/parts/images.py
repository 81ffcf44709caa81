"""Which bytes are an image that a browser may be given in a message."""

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
