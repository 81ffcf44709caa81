"""Links to artifacts and to complete values that the log has truncated.

Links are paths without a host. Those in the log have no root path either, because it may change; `link` adds it to
what is sent to clients.
"""

from urllib.parse import quote


def link(root: str, path: str) -> str:
    """Return a path of the log with the root path before it; "" stays ""."""
    return root + path if path else ""


def artifact_url(artifact_id: str) -> str:
    """Return the path of an artifact."""
    return f"/artifacts/{artifact_id}"


def result_url(run_id: str, kind: str, id_: str) -> str:
    """Return the path of a complete value: the input, the answer (`content`), an approval or a tool call."""
    match kind:
        case "input":
            return f"/runs/{run_id}/input"
        case "content":
            return f"/runs/{run_id}/answer"
        case "approval" | "edited":
            return f"/runs/{run_id}/approvals/{quote(id_, safe='')}"
        case _:
            return f"/runs/{run_id}/tools/{quote(id_, safe='')}"
