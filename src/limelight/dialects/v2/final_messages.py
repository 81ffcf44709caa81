"""Which messages count: a text that grows comes in many messages, and only the last of them is the text."""

import msgspec


class _Metadata(msgspec.Struct):
    streaming: bool = False


class _Message(msgspec.Struct):
    metadata: _Metadata


_decode = msgspec.json.Decoder(_Message).decode


def is_whole(message: bytes) -> bool:
    """False for the beginning and the increments of a text that grows."""
    return not _decode(message).metadata.streaming
