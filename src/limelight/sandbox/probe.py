"""The program that checks, in a sandbox, that code is confined. It prints `confined`, or what is not."""

import os
import socket
import sys
from pathlib import Path

from limelight.sandbox.confinement import confine
from limelight.sandbox.launch import read_arguments


def main(argv: list[str]) -> None:
    level, policy, (secret,) = read_arguments(argv)
    os.chdir(policy.workspace)
    confine(level, policy, processes=False)
    sys.stdout.write(problem(secret) or "confined")


def problem(secret: str) -> str:
    """Return what the sandbox does not prevent or does not allow; "" if it confines code."""
    try:
        Path(secret).read_bytes()
        return "a file outside of the workspace can be read"
    except OSError:
        pass
    try:
        socket.socket().close()
        return "a socket can be created"
    except OSError:
        pass
    try:
        os._exit(0) if os.fork() == 0 else None
        return "a process can be created"
    except OSError:
        pass
    try:
        Path("probe").write_text("written")
    except OSError as error:
        return f"the workspace cannot be written: {error}"
    return ""


if __name__ == "__main__":
    main(sys.argv[1:])
