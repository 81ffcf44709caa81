"""Builds the page before a wheel or an sdist is made. Hatchling calls it; an editable installation is left alone.

It does what `make page` does: nothing if the finished build is there and current, so that a wheel can be made from an
sdist without Node.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PageHook(BuildHookInterface):  # pyright: ignore[reportMissingTypeArgument]
    """The page is part of every wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        script = Path(self.root) / "tools" / "build_page.sh"
        done = subprocess.run(["sh", str(script)], env={**os.environ, "PYTHON": sys.executable}, check=False)
        if done.returncode:
            raise SystemExit(
                "limelight: the page was not built, and a package without it is no use: see the lines above"
            )
