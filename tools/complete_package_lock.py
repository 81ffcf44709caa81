"""Completes `web/package-lock.json` with the optional packages of other platforms.

`npm install` leaves out packages that its registry lacks, and then `npm ci` rejects the file on every platform.
`make lock` calls this module; a test fails if packages are missing. The platform of a package is derived from its name.
"""

import json
from pathlib import Path
from typing import Any

LOCK = Path(__file__).parents[1] / "web" / "package-lock.json"
SYSTEMS = ("aix", "android", "darwin", "freebsd", "linux", "netbsd", "openbsd", "openharmony", "sunos", "win32")
PROCESSORS = ("arm64", "arm", "ia32", "loong64", "mips64el", "ppc64", "riscv64", "s390x", "wasm32", "x64")
LIBRARIES = {"musl": "musl", "gnu": "glibc"}


def completed(lock: dict[str, Any]) -> dict[str, Any]:
    """Return the lock file with an entry for each optional dependency of each package."""
    packages: dict[str, Any] = dict(lock["packages"])
    for owner in list(packages.values()):
        for name, version in owner.get("optionalDependencies", {}).items():
            path = f"node_modules/{name}"
            if path not in packages:
                dev = {"dev": True} if owner.get("dev") else {}
                packages[path] = {"version": version, **_platform(name), **dev, "optional": True}
    # The order of npm: the project, then all packages by path.
    return {**lock, "packages": {path: packages[path] for path in sorted(packages)}}


def _platform(name: str) -> dict[str, list[str]]:
    """Return the platform in the name of a package: system, processor and C library of `cli-linux-arm64-musl`."""
    words = name.rpartition("/")[2].split("-")
    found = {
        "cpu": [word for word in words if word in PROCESSORS],
        "libc": [LIBRARIES[word] for word in words if word in LIBRARIES and "linux" in words],
        "os": [word for word in words if word in SYSTEMS],
    }
    return {key: values for key, values in found.items() if values}


def text_of(lock: dict[str, Any]) -> str:
    return json.dumps(lock, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    LOCK.write_text(text_of(completed(json.loads(LOCK.read_text(encoding="utf-8")))), encoding="utf-8")
