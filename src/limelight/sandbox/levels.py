"""The levels of confinement of a sandbox: finds out which ones work on this machine, and chooses one.

Containers often forbid namespaces or system calls, so a level may fail although all its parts are installed. Each level
is therefore probed by starting a real sandbox.
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
from limelight.sandbox.policy import Level, Limits, Policy
from limelight.sandbox.probe import MAX_PROCESSES
from limelight.sandbox.process import kill, spawn

LevelSetting = Literal["auto", "bubblewrap", "landlock", "none"]
"""The values of the setting `sandbox.level`: a level, or `auto` for the strongest one that works."""
PROBE_SECONDS = 20.0
CONFINED = "confined"


class Availability(msgspec.Struct, frozen=True):
    """Whether a level works on this machine. `reason` says why it does not, or why no stronger level is used."""

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
    reason = _missing_part(level) or ("" if level == "none" else probe_problem(level))
    return Availability(level, not reason, reason)


def choose_level(choice: LevelSetting) -> Availability:
    """Return the level for a setting: the strongest that works for `auto`, otherwise the one that is set.

    The `reason` of the result says why the level is not the strongest one. Raises SetupError if the level that is set
    does not work.
    """
    if choice != "auto":
        found = availability(choice)
        if not found.works:
            raise SetupError(f"sandbox.level = {choice!r} does not work here: {found.reason}")
        return found if choice == "bubblewrap" else Availability(choice, True, "set by sandbox.level")
    bubblewrap = availability("bubblewrap")
    if bubblewrap.works:
        return bubblewrap
    landlocked = availability("landlock")
    if landlocked.works:
        return Availability("landlock", True, f"bubblewrap: {bubblewrap.reason}")
    return Availability("none", True, f"bubblewrap: {bubblewrap.reason}; landlock: {landlocked.reason}")


def check_choice(choice: LevelSetting) -> None:
    """Raise SetupError if the level that is set does not work. For `auto`, begin to probe levels in a thread."""
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


def probe_problem(level: Level) -> str:
    """Run the probe program in a sandbox of a level. Return why the level does not work; "" if it does."""
    with tempfile.TemporaryDirectory(prefix="limelight-probe-") as folder:
        secret = Path(folder, "secret")
        secret.write_text("secret")
        workspace = Path(folder, "workspace")
        workspace.mkdir()
        limits = Limits(processes=MAX_PROCESSES)
        policy = Policy(workspace=str(workspace), read_only=readable_paths(), hidden=(str(secret),), limits=limits)
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
    return _problem(output, process.returncode)


def _problem(output: str, exit_code: int) -> str:
    """Return why a level does not work, by the output of the probe and its exit code; "" if it works.

    A probe that failed itself does not prove that this machine lacks the level, so its error is reported as such.
    """
    last_line = output.rpartition("\n")[2]
    if "Traceback (most recent call last)" in output:
        return f"the probe failed: {last_line}"
    if exit_code == 0 and output == CONFINED:
        return ""
    return last_line if last_line not in ("", CONFINED) else f"the probe ended with exit code {exit_code} and no result"
