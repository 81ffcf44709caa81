"""Where a client gets a whole value that a Record or a frame shows only in part. Paths, without a host or a prefix."""

from urllib.parse import quote


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
