"""deepagents' file tools on the folder of the session that the agent works for at the moment."""

from pathlib import Path
from typing import Any

from deepagents.backends.filesystem import FilesystemBackend

from limelight.builtin.file_tools import inside, session_folder


class SessionFiles(FilesystemBackend):
    """One object for all sessions, as the graph is made once: `cwd` is another folder in every run."""

    def __init__(self, *, samples: bool) -> None:
        self._samples = samples
        super().__init__(root_dir=Path(), virtual_mode=True)

    @property
    def cwd(self) -> Path:
        return session_folder(samples=self._samples)

    @cwd.setter
    def cwd(self, _: Any) -> None:
        """The base class sets it once; the folder is looked up instead."""

    def _resolve_path(self, key: str) -> Path:
        # The base class raises ValueError, which would end the run, and names the real folder in it.
        return inside(self.cwd, key)
