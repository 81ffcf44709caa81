"""Creates files and folders that only their owner may access, whatever the umask and the folder's permissions.

The store, the sources and the workspaces use this for everything that contains conversations.
"""

import glob
import logging
import os
import stat
from contextlib import suppress
from pathlib import Path

log = logging.getLogger(__name__)
FILE_MODE = 0o600
FOLDER_MODE = 0o700
OTHERS = stat.S_IRWXG | stat.S_IRWXO
"""The permission bits of the group and of all other users."""


def create_private_database(path: Path) -> None:
    """Create an empty database file that only its owner may access, or make an existing one private.

    SQLite gives the files that it creates beside a database (`-wal`, `-shm`) the mode of the database. Files whose name
    begins with that of the database are private too: these files of SQLite, the lock and the copies. Raises OSError.
    """
    with suppress(FileExistsError):
        # An existing file is not opened: closing it would release the locks that SQLite has on it in this process.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE))
    for file in path.parent.glob(glob.escape(path.name) + "*"):
        make_private(file)


def make_private(path: Path) -> None:
    """Remove other users' permissions from a file or folder, if it exists. Logs a warning if that is not permitted."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & OTHERS:
            path.chmod(mode & ~OTHERS)
    except FileNotFoundError:
        pass
    except OSError as error:
        log.warning("other users of this machine may read %s, and its mode cannot be changed: %s", path, error.strerror)
