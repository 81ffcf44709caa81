"""Where the text of the pipe is: beside this module in a wheel, in the tree's own folder in a clone."""

from pathlib import Path

from limelight.errors import SetupError

FILE_NAME = "deep_agent_pipe.py"


def pipe_text() -> str:
    """The file that Open WebUI runs."""
    here = Path(__file__).parent
    for path in (here / FILE_NAME, here.parents[2] / "openwebui" / FILE_NAME):
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise SetupError(f"{FILE_NAME} is missing from this installation: install limelight again")
