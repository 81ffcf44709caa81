"""Where a session's files are. Session ids come from outside, so a name is made that stays inside the folder."""

import asyncio
import hashlib
from pathlib import Path

from limelight.errors import StoreUnavailable
from limelight.file_trees import remove_tree
from limelight.models import LOCAL_OWNER, SessionRef

PRIVATE = 0o700
"""Files of conversations are for nobody else's eyes."""


class Workspaces:
    """The folders of all sessions. They are made by whoever first asks for one, and go with their session."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def folder(self, ref: SessionRef) -> Path:
        return self._root / workspace_name(ref)

    def made(self, ref: SessionRef) -> Path:
        """The folder, which is there then. Raises StoreUnavailable if the data folder is not.

        That one is never made here: where it was moved away, it is to be moved back, and another would be in its place.
        """
        folder = self.folder(ref)
        try:
            self._root.mkdir(mode=PRIVATE, exist_ok=True)
            folder.mkdir(mode=PRIVATE, exist_ok=True)
        except FileNotFoundError as error:
            raise StoreUnavailable("the data folder of the server is gone; try again when it is back") from error
        return folder

    async def remove(self, ref: SessionRef) -> None:
        await asyncio.to_thread(remove_tree, self.folder(ref))


def shared_folder(name: str) -> Path:
    """A folder that somebody has named for all sessions of an agent, made if it is not there."""
    folder = Path(name)
    folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    return folder


def workspace_name(ref: SessionRef) -> str:
    """One folder name for each session: the id as it is for the local user, made unique for others.

    `~` is not allowed in ids, so a name with it never collides, and an id like `..` never becomes a path.
    """
    name = f"~{ref.session_id}" if ref.session_id.startswith(".") else ref.session_id
    if ref.owner == LOCAL_OWNER:
        return name
    return f"{name}~{hashlib.sha256(ref.owner.encode()).hexdigest()[:12]}"
