"""Builds the links (URL paths) to artifacts, and to complete values of which the log has only a preview.

A link is a path without a host. Links in the log do not include the root path of the server, because it may change;
`link` adds the root path to links that are sent to clients.
"""

import base64
import binascii
import re
from urllib.parse import quote

ENCODED = "~"
"""First character of a path segment that contains a call id as Base64."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f\\]")
"""Control characters, and the backslash, which browsers treat as a slash."""


def link(root: str, path: str) -> str:
    """Return a link from the log, prefixed with the server's root path; "" stays ""."""
    return root + path if path else ""


def artifact_url(artifact_id: str) -> str:
    """Return the URL path from which an artifact is downloaded."""
    return f"/artifacts/{artifact_id}"


def result_url(run_id: str, kind: str, id_: str) -> str:
    """Return the URL path of a stored value: the input, the answer (`content`), an approval or a tool call."""
    match kind:
        case "input":
            return f"/runs/{run_id}/input"
        case "content":
            return f"/runs/{run_id}/answer"
        case "approval" | "edited":
            return f"/runs/{run_id}/approvals/{quote(id_, safe='')}"
        case _:
            return f"/runs/{run_id}/tools/{call_segment(id_)}"


def call_segment(call_id: str) -> str:
    """Return the URL path segment for a tool call: its id quoted, or Base64 if it cannot be in a path."""
    if _fits_into_path(call_id):
        return quote(call_id, safe="")
    return ENCODED + base64.urlsafe_b64encode(call_id.encode()).decode().rstrip("=")


def _fits_into_path(call_id: str) -> bool:
    """Whether a quoted call id stays unchanged in a URL path, and does not look like an encoded id."""
    has_dots = any(segment in (".", "..") for segment in call_id.split("/"))
    return bool(call_id) and not has_dots and not call_id.startswith(ENCODED) and not _CONTROL.search(call_id)


def call_id_of_segment(segment: str) -> str:
    """Return the tool call's id from an unquoted URL path segment, which `call_segment` may have encoded."""
    if not segment.startswith(ENCODED):
        return segment
    try:
        encoded = segment.removeprefix(ENCODED)
        return base64.b64decode(encoded + "=" * (-len(encoded) % 4), b"-_", validate=True).decode()
    except (binascii.Error, ValueError):  # the link of an older version, which did not encode an id like `~x`
        return segment
