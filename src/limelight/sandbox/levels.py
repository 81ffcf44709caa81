"""Which levels of sandboxes work on this machine, and which one is used.

A level is not assumed to work because its parts exist: containers often forbid namespaces or system calls. Each level
is probed with a real sandbox.
"""

import shutil
import subprocess
import sys
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from limelight.errors import SetupError
from limelight.sandbox import landlock, seccomp
from limelight.sandbox.launch import BUBBLEWRAP, launch, readable_paths
from limelight.sandbox.policy import Level, Policy
from limelight.sandbox.process import kill, spawn

Choice = Literal["auto", "bubblewrap", "landlock", "none"]
"""The setting: a level, or the strongest level that works."""
PROBE_SECONDS = 20.0
CONFINED = "confined"


class Availability(msgspec.Struct, frozen=True):
    """Whether a level works on this machine. `reason` says why it does not."""

    level: Level
    works: bool
    reason: str = ""


_lock = threading.Lock()


def availability(level: Level) -> Availability:
    """Start a sandbox of a level, and return whether it confines code. The result is cached."""
    with _lock:
        return _availability(level)


@cache
def _availability(level: Level) -> Availability:
    reason = _missing_part(level) or ("" if level == "none" else _probe(level))
    return Availability(level, not reason, reason)


def choose_level(choice: Choice) -> Availability:
    """Return the level for a setting: the strongest that works, or the one that is set.

    For `auto`, the reason of `none` names what is missing. Raises SetupError if the level that is set does not work.
    """
    if choice != "auto":
        found = availability(choice)
        if not found.works:
            raise SetupError(f"sandbox.level = {choice!r} does not work here: {found.reason}")
        return found
    bubblewrap = availability("bubblewrap")
    if bubblewrap.works:
        return bubblewrap
    landlocked = availability("landlock")
    if landlocked.works:
        return landlocked
    return Availability("none", True, f"bubblewrap: {bubblewrap.reason}; landlock: {landlocked.reason}")


def check_choice(choice: Choice) -> None:
    """Raise SetupError if the level that is set does not work. For `auto`, start to find the level in a thread."""
    if choice != "auto":
        choose_level(choice)
        return
    threading.Thread(target=choose_level, args=(choice,), name="limelight-sandbox-probe", daemon=True).start()


def _missing_part(level: Level) -> str:
    if level == "none":
        return ""
    if sys.platform != "linux":
        return "it needs Linux"
    if not seccomp.is_supported():
        return "seccomp filters are made for x86_64 and aarch64 only"
    if level == "bubblewrap":
        return "" if shutil.which(BUBBLEWRAP) else "bubblewrap is not installed (Debian: apt-get install bubblewrap)"
    abi = landlock.abi()
    if abi < landlock.REQUIRED_ABI:
        return f"Landlock needs Linux 6.2 or newer with Landlock enabled (ABI {landlock.REQUIRED_ABI}, here {abi})"
    return ""


def _probe(level: Level) -> str:
    """Run the probe in a sandbox. Return why the level does not work; "" if it does."""
    with tempfile.TemporaryDirectory(prefix="limelight-probe-") as folder:
        secret = Path(folder, "secret")
        secret.write_text("secret")
        workspace = Path(folder, "workspace")
        workspace.mkdir()
        policy = Policy(workspace=str(workspace), read_only=readable_paths(), hidden=(str(secret),))
        try:
            process = spawn(
                launch(level, policy, "probe", [str(secret)]),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        except (OSError, SetupError) as error:
            return str(error)
        try:
            output = process.communicate(timeout=PROBE_SECONDS)[0].decode("utf-8", "replace").strip()
        except subprocess.TimeoutExpired:
            return f"the probe did not end within {PROBE_SECONDS:g} seconds"
        finally:
            kill(process)
    return "" if output == CONFINED else output.rpartition("\n")[2] or f"exit code {process.returncode}"
