"""What a backup says about itself, and what a data folder says about its newest backup."""

from pathlib import Path

import msgspec

from limelight.backups.content import MANIFEST, NOTE
from limelight.errors import SetupError


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Is written last: a folder that has one is whole."""

    limelight: str
    """The version that made it."""
    made_at: int
    databases: list[str]
    files: int
    doubtful: dict[str, str] = {}
    """Databases that were damaged already, or could not be read as such, and why. They are in it as they were."""


class Note(msgspec.Struct, frozen=True):
    """When the newest backup was made, and where it was put."""

    at: int
    target: str


def write_manifest(folder: Path, manifest: Manifest) -> None:
    _write(folder / MANIFEST, manifest)


def read_manifest(folder: Path) -> Manifest:
    """Raises SetupError if the folder is no backup."""
    try:
        return msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError) as error:
        raise SetupError(f"{folder} is no backup of Limelight: it has no {MANIFEST} that can be read") from error


def write_note(data: Path, note: Note) -> None:
    _write(data / NOTE, note)


def read_note(data: Path) -> Note | None:
    """None if no backup is known."""
    try:
        return msgspec.json.decode((data / NOTE).read_bytes(), type=Note)
    except (OSError, msgspec.DecodeError):
        return None


def _write(path: Path, value: msgspec.Struct) -> None:
    path.touch(mode=0o600)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(value)) + b"\n")
