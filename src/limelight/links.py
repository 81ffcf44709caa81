"""Links to artifacts, and to stored values of which the log has only a preview.

A link is a path without a host. Links in the log do not include the root path of the server, because it may change;
`link` adds the root path to links that are sent to clients.
"""

from urllib.parse import quote


def link(root: str, path: str) -> str:
    """Return a link of the log with the root path before it; "" stays ""."""
    return root + path if path else ""


def artifact_url(artifact_id: str) -> str:
    """Return the path of an artifact."""
    return f"/artifacts/{artifact_id}"


def result_url(run_id: str, kind: str, id_: str) -> str:
    """Return the path of a value in the results table: of the input, the answer (`content`), an approval or a call."""
    match kind:
        case "input":
            return f"/runs/{run_id}/input"
        case "content":
            return f"/runs/{run_id}/answer"
        case "approval" | "edited":
            return f"/runs/{run_id}/approvals/{quote(id_, safe='')}"
        case _:
            return f"/runs/{run_id}/tools/{quote(id_, safe='')}"
