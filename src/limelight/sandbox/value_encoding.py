"""Encodes Python values as JSON and decodes them, for the messages between the server and a sandbox.

A value that is neither a string, a small number, a boolean nor None becomes a list of a type tag and its content.
Decoding creates only values of known types, so the server can safely decode what hostile code has sent. The server may
also send pickled objects, which only the sandbox decodes.
"""

import base64
import io
import math
import pickle
import re
from collections import Counter
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from importlib import import_module
from pathlib import Path, PurePath
from typing import Any, cast

from limelight.sandbox.message_framing import MAX_BYTES

MAX_DEPTH = 60
"""Maximum depth of nested containers in a value."""
MAX_INTEGER = 2**63
"""Integers of this size or more are sent as hexadecimal text, because Python limits the digits of decimal ones."""
LONG_TEXT = 10_000
"""Texts longer than this are sent in base64, because the limit of values counts characters of texts, too."""
BASE64_STEP = 256 * 1024
"""Number of characters of base64 that are decoded at once. No other thread runs meanwhile."""
MAX_PIXELS = 50_000_000
"""Maximum number of pixels of an image that is decoded, unless the caller has a limit of its own."""
MAX_EQUAL_HASHES = 100
"""Maximum number of elements of a set, or keys of a dict, with the same hash, because these are compared in pairs."""
NUMERIC_KINDS = "biufc"
"""NumPy's letters for the types of arrays that can be sent: booleans, integers, floats and complex numbers."""


class NotEncodable(TypeError):
    """Raised for a value that cannot be sent between server and sandbox, such as one of an unknown type."""


def encode(value: Any, *, with_pickle: bool = False, depth: int = 0) -> Any:
    """Convert a value to JSON types. Raises NotEncodable for unknown types; with `with_pickle` it pickles them."""
    if depth > MAX_DEPTH:
        raise NotEncodable(f"containers are nested more than {MAX_DEPTH} levels deep")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        text = str.__str__(value)
        return text if len(text) <= LONG_TEXT else ["text", _base64(text.encode("utf-8", "surrogatepass"))]
    if isinstance(value, int):
        number = int(value)
        return number if -MAX_INTEGER < number < MAX_INTEGER else ["int", hex(number)]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else ["float", float(value).hex()]

    def inner(item: Any) -> Any:
        return encode(item, with_pickle=with_pickle, depth=depth + 1)

    if isinstance(value, Mapping):
        mapping = cast("Mapping[Any, Any]", value)
        return ["dict", [[inner(key), inner(item)] for key, item in mapping.items()]]
    if isinstance(value, tuple):
        return ["tuple", [inner(item) for item in cast("tuple[Any, ...]", value)]]
    if isinstance(value, frozenset):
        return ["frozenset", [inner(item) for item in cast("frozenset[Any]", value)]]
    if isinstance(value, AbstractSet):
        return ["set", [inner(item) for item in cast("AbstractSet[Any]", value)]]
    if isinstance(value, list | range):
        return ["list", [inner(item) for item in cast("list[Any]", value)]]
    return _encode_other(value, with_pickle)


def _encode_other(value: Any, with_pickle: bool) -> Any:
    match value:
        case bytes() | bytearray() | memoryview():
            return ["bytes", _base64(bytes(cast("bytes", value)))]
        case complex():
            return ["complex", [value.real.hex(), value.imag.hex()]]
        case datetime():
            return ["datetime", value.isoformat()]
        case date():
            return ["date", value.isoformat()]
        case time():
            return ["time", value.isoformat()]
        case timedelta():
            return ["timedelta", [value.days, value.seconds, value.microseconds]]
        case Decimal():
            return ["Decimal", str(value)]
        case PurePath():
            return ["path", str(value)]
        case _:
            pass
    if (image := _png_of(value)) is not None:
        return ["image", _base64(image)]
    if (array := _array_of(value)) is not None:
        return array
    if with_pickle:
        return _pickled(value)
    raise NotEncodable(f"a value of type {type(value).__name__} cannot be sent")


def _pickled(value: Any) -> Any:
    try:
        return ["pickle", [_base64(pickle.dumps(value)), str(value)[:LONG_TEXT]]]
    except Exception as error:  # classes define how they are pickled, and may raise anything
        raise NotEncodable(f"a value of type {type(value).__name__} cannot be sent: {error}") from error


def _unpickled(data: str, text: str) -> Any:
    """Return a pickled object, or its text if this process cannot import its class."""
    try:
        return pickle.loads(base64.b64decode(data))
    except Exception:  # classes define how they are pickled, and may raise anything
        return text


def _png_of(value: Any) -> bytes | None:
    if not any(base.__module__ == "PIL.Image" and base.__name__ == "Image" for base in type(value).__mro__):
        return None
    buffer = io.BytesIO()
    value.save(buffer, format="PNG")
    return buffer.getvalue()


def _array_of(value: Any) -> Any:
    """Encode a NumPy array or number; return None for any other value."""
    if type(value).__module__ != "numpy" or getattr(getattr(value, "dtype", None), "kind", "") not in NUMERIC_KINDS:
        return None
    shape: tuple[int, ...] = tuple(value.shape)
    return ["array", [value.dtype.str, list(shape), _base64(value.tobytes())]]


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _from_base64(text: str) -> bytes:
    """Decode base64 in pieces, between which other threads can run."""
    return b"".join(base64.b64decode(text[at : at + BASE64_STEP]) for at in range(0, len(text), BASE64_STEP))


def check_pixels(pixels: int) -> None:
    """Raise ValueError if an image has more than MAX_PIXELS."""
    if pixels > MAX_PIXELS:
        raise ValueError(f"{pixels:,} pixels are too many")


def decode(
    encoded: Any,
    *,
    with_pickle: bool = False,
    admit_pixels: Callable[[int], None] = check_pixels,
    depth: int = 0,
) -> Any:
    """Convert the JSON types that `encode` returns back to the value. Raises ValueError for other content.

    `admit_pixels` is called with the number of pixels of each image before it is decoded, and raises ValueError if
    they are too many.
    """
    if depth > MAX_DEPTH:
        raise ValueError("the value is nested too deeply")
    if not isinstance(encoded, list):
        if isinstance(encoded, dict):
            raise ValueError("an encoded value has no objects")
        return encoded
    items = cast("list[Any]", encoded)
    if len(items) != 2 or not isinstance(items[0], str):
        raise ValueError("an encoded value is a list of a tag and its content")
    tag, content = items
    if tag == "pickle" and with_pickle:
        return _unpickled(*content)

    def inner(item: Any) -> Any:
        return decode(item, with_pickle=with_pickle, admit_pixels=admit_pixels, depth=depth + 1)

    try:
        if tag == "image":
            return _image(content, admit_pixels)
        if tag == "dict":
            return _dict([(inner(key), inner(item)) for key, item in content])
        if (container := _CONTAINERS.get(tag)) is not None:
            return container([inner(item) for item in content])
        if (make := _MAKERS.get(tag)) is not None:
            return make(content)
    except (ValueError, TypeError, ArithmeticError, LookupError, OSError, ImportError) as error:
        raise ValueError(f"{tag}: {error}") from error
    raise ValueError(f"there is no type {tag!r}")


def _dict(items: list[tuple[Any, Any]]) -> dict[Any, Any]:
    _check_hashes([key for key, _ in items])
    return dict(items)


def _set(items: list[Any]) -> set[Any]:
    _check_hashes(items)
    return set(items)


def _check_hashes(items: list[Any]) -> None:
    """Raise ValueError if many items have the same hash, because a set of them could take hours to create."""
    counts = Counter(map(hash, items))
    if counts and max(counts.values()) > MAX_EQUAL_HASHES:
        raise ValueError(f"more than {MAX_EQUAL_HASHES} items have the same hash")


def _image(content: str, admit_pixels: Callable[[int], None]) -> Any:
    from PIL import Image

    data = _from_base64(content)
    try:
        image = Image.open(io.BytesIO(data), formats=["PNG"])
        admit_pixels(image.width * image.height)
        image.load()
    except Exception as error:  # decoders raise all kinds of errors for a broken image
        raise ValueError(f"{type(error).__name__}: {error}") from error
    return image


def _array(content: list[Any]) -> Any:
    kind, shape, data = content
    if not re.fullmatch(f"[<>|=]?[{NUMERIC_KINDS}][0-9]{{1,2}}", str(kind)):
        raise ValueError(f"arrays of type {kind} are not accepted")
    lengths = [int(length) for length in shape]
    if math.prod(max(1, length) for length in lengths) > MAX_BYTES:  # an empty array may have any length
        raise ValueError(f"an array of shape {lengths} is too large")
    np: Any = import_module("numpy")
    array = np.frombuffer(_from_base64(data), dtype=np.dtype(str(kind))).reshape(lengths)
    return array.copy() if shape else array[()]


def _decimal(text: str) -> Decimal:
    if len(text) > LONG_TEXT:
        raise ValueError(f"{len(text)} digits are too many")
    return Decimal(text)


_CONTAINERS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "set": _set,
    "frozenset": lambda items: frozenset(_set(items)),
}
_MAKERS: dict[str, Callable[[Any], Any]] = {
    "text": lambda text: _from_base64(text).decode("utf-8", "surrogatepass"),
    "int": lambda text: int(text, 16),
    "float": float.fromhex,
    "bytes": _from_base64,
    "complex": lambda parts: complex(float.fromhex(parts[0]), float.fromhex(parts[1])),
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "timedelta": lambda parts: timedelta(*parts),
    "Decimal": _decimal,
    "path": Path,
    "array": _array,
}
