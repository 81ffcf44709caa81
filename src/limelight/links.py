"""Where a client gets what a Record or a frame only names or shows in part.

Paths, without a host. The log has them without the root below which a client finds the server, as that may change;
`link` puts it in front of what goes out.
"""

from urllib.parse import quote


def link(root: str, path: str) -> str:
    """A path of the log as a client asks for it; "" is nothing to ask for."""
    return root + path if path else ""


def artifact_url(artifact_id: str) -> str:
    return f"/artifacts/{artifact_id}"


def result_url(run_id: str, kind: str, id_: str) -> str:
    """The path of one value; `kind` is the name under which the log keeps it."""
    match kind:
        case "input":
            return f"/runs/{run_id}/input"
        case "content":
            return f"/runs/{run_id}/answer"
        case "approval" | "edited":
            return f"/runs/{run_id}/approvals/{quote(id_, safe='')}"
        case _:
            return f"/runs/{run_id}/tools/{quote(id_, safe='')}"
