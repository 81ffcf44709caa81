"""The workspace folders of sessions, in which agents keep files. Any session id of a client gives a safe name."""

import asyncio
import hashlib
from pathlib import Path

from limelight.errors import StoreUnavailable
from limelight.file_trees import remove_tree
from limelight.models import LOCAL_OWNER, SessionRef
from limelight.private_files import FOLDER_MODE, make_private


class Workspaces:
    """The workspace folders of all sessions. A folder is created at its first use, and removed with its session."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def make_private(self) -> None:
        """Make the folder of all workspaces, and so everything in it, accessible to its owner only."""
        make_private(self._root)

    def folder(self, ref: SessionRef) -> Path:
        return self._root / workspace_name(ref)

    def ensure_folder(self, ref: SessionRef) -> Path:
        """Return the folder of a session; create it if needed. Raises StoreUnavailable if the data folder is missing.

        The data folder is never created here, because an operator may have moved it by mistake.
        """
        folder = self.folder(ref)
        try:
            self._root.mkdir(mode=FOLDER_MODE, exist_ok=True)
            folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
        except FileNotFoundError as error:
            raise StoreUnavailable("the data folder of the server is gone; try again when it is back") from error
        return folder

    async def remove(self, ref: SessionRef) -> None:
        await asyncio.to_thread(remove_tree, self.folder(ref))


def shared_folder(name: str) -> Path:
    """Return the folder that all sessions of an agent share, and create it if needed."""
    folder = Path(name)
    folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    return folder


def workspace_name(ref: SessionRef) -> str:
    """Return the folder name of a session: its id and, for users other than `local`, a hash of the owner.

    Ids do not contain `~`, so names with it never collide, and an id like `..` never becomes a path.
    """
    name = f"~{ref.session_id}" if ref.session_id.startswith(".") else ref.session_id
    if ref.owner == LOCAL_OWNER:
        return name
    return f"{name}~{hashlib.sha256(ref.owner.encode()).hexdigest()[:12]}"
