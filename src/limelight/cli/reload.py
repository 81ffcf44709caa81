"""`--reload`: run the same command in a child process, and start it again when a Python file changes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import typer

LOOK_SECONDS = 0.5


def run_with_reload(command: list[str], watch: Path) -> None:
    """Until Ctrl-C. Looks at times of change twice a second, which is cheap for a project and needs no library."""
    arguments = [sys.executable, "-m", "limelight", *(word for word in command[1:] if word != "--reload")]
    environment = {"LIMELIGHT_GRACE_SECONDS": "0", **os.environ}  # who has just saved a file does not want to wait
    signal.signal(signal.SIGTERM, _leave)
    child = subprocess.Popen(arguments, env=environment)
    seen = _times(watch)
    try:
        while True:
            time.sleep(LOOK_SECONDS)
            now = _times(watch)
            if now != seen:
                changed = sorted(
                    str(p.relative_to(watch)) for p in now.keys() | seen.keys() if now.get(p) != seen.get(p)
                )
                typer.echo(f"{', '.join(changed[:3])} changed: starting again.")
                seen = now
                _end(child)
                child = subprocess.Popen(arguments, env=environment)
    except KeyboardInterrupt:
        pass
    finally:
        _end(child)


def _leave(*_: object) -> None:
    sys.exit(0)


def _times(folder: Path) -> dict[Path, float]:
    """When each Python file changed, without those of environments and caches."""
    found: dict[Path, float] = {}
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "__")) and name != "node_modules"]
        for name in files:
            if name.endswith(".py"):
                path = Path(place) / name
                found[path] = path.stat().st_mtime if path.exists() else 0
    return found


def _end(child: "subprocess.Popen[bytes]") -> None:
    child.terminate()
    try:
        child.wait(timeout=15)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
