"""Where a session's files are. Session ids come from outside, so a name is made that stays inside the folder."""

import asyncio
import hashlib
from pathlib import Path

from limelight.stores.base import LOCAL_OWNER, SessionRef
from limelight.trees import remove


class Workspaces:
    """The folders of all sessions. They are made by whoever first asks for one, and go with their session."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def folder(self, ref: SessionRef) -> Path:
        return self._root / workspace_name(ref)

    async def remove(self, ref: SessionRef) -> None:
        await asyncio.to_thread(remove, self.folder(ref))


def workspace_name(ref: SessionRef) -> str:
    """One folder name for each session: the id as it is for the local user, made unique for others.

    `~` is not allowed in ids, so a name with it never collides, and an id like `..` never becomes a path.
    """
    name = f"~{ref.session_id}" if ref.session_id.startswith(".") else ref.session_id
    if ref.owner == LOCAL_OWNER:
        return name
    return f"{name}~{hashlib.sha256(ref.owner.encode()).hexdigest()[:12]}"
