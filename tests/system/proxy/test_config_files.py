"""The files of `deploy/` as the programs themselves judge them."""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.system.proxy.proxies import DEPLOY, caddyfile, replaced

EXPOSURE = 20
"""In tenths, of 100: what systemd itself calls OK ends at 40."""


def said(*command: str) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


def test_caddyfile_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "Caddyfile"
    path.write_text(caddyfile())
    output = said("caddy", "validate", "--adapter", "caddyfile", "--config", str(path))
    assert "Valid configuration" in output


def test_systemd_unit_is_valid(tmp_path: Path) -> None:
    unit = tmp_path / "limelight.service"
    command = shutil.which("limelight") or sys.executable
    unit.write_text(replaced((DEPLOY / "systemd" / unit.name).read_text(), {"/opt/limelight/bin/limelight": command}))
    assert said("systemd-analyze", "verify", str(unit)) == ""
    output = said("systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE}", str(unit))
    assert "Overall exposure level" in output
