"""The keys of a data folder: one small file, which a server reads and `limelight keys` writes beside it.

A file of its own and not a table of the store: it is changed while a server holds the store, and looked at with every
request. It is replaced as a whole, so whoever reads it gets all of it; a reader looks only at its date until that
changes.
"""

import fcntl
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from limelight.auth.api_keys import ApiKey, make_key, read_key
from limelight.auth.scopes import Scope
from limelight.errors import SetupError

NAME = "keys.json"
_Stamp = tuple[int, int, int]


class Keyring:
    """All keys that were ever made here, those that were revoked too."""

    def __init__(self, data: Path) -> None:
        self._path = data / NAME
        self._stamp: _Stamp | None = None
        self._keys: dict[str, ApiKey] = {}

    def has_any(self) -> bool:
        """True once a key was made. It stays so when all are revoked: nobody opens a server by revoking a key."""
        self._read()
        return bool(self._keys)

    def all(self) -> list[ApiKey]:
        self._read()
        return list(self._keys.values())

    def find(self, text: str) -> ApiKey | None:
        """The key that somebody has sent, if it is one and still holds."""
        written = read_key(text)
        if written is None:
            return None
        self._read()
        key = self._keys.get(written.key_id)
        return key if key is not None and key.opens_with(written.secret) else None

    def create(self, user: str, scopes: tuple[Scope, ...], at: int) -> tuple[ApiKey, str]:
        """A new key, and the text that its holder gets."""
        key, text = make_key(user, scopes, at)
        self._change(lambda keys: keys.update({key.key_id: key}))
        return key, text

    def revoke(self, key_id: str, at: int) -> ApiKey | None:
        """From now on it opens nothing. None if there is no such key; one that is revoked stays as it is."""

        def change(keys: dict[str, ApiKey]) -> None:
            key = keys.get(key_id)
            if key is not None and key.revoked_at is None:
                keys[key_id] = msgspec.structs.replace(key, revoked_at=at)

        self._read()
        if key_id in self._keys:
            self._change(change)
        return self._keys.get(key_id)

    def _read(self) -> None:
        """Read the file if it is another than before. Keys that were there do not go with their file: who removes or
        empties it does not open the server."""
        try:
            found = self._path.stat()
            stamp = (found.st_ino, found.st_mtime_ns, found.st_size)
            if stamp == self._stamp:
                return
            keys = msgspec.json.decode(self._path.read_bytes(), type=list[ApiKey])
        except (FileNotFoundError, NotADirectoryError) as error:
            if self._keys:
                raise self._gone() from error
            return
        except (OSError, msgspec.DecodeError) as error:
            raise SetupError(f"{self._path} cannot be read ({error}): restore a copy of it") from error
        if self._keys and not keys:
            raise self._gone()
        self._stamp, self._keys = stamp, {key.key_id: key for key in keys}

    def _gone(self) -> SetupError:
        return SetupError(f"the keys of {self._path} are gone: restore a copy; a server that starts without is open")

    def _change(self, change: Callable[[dict[str, ApiKey]], None]) -> None:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._locked():
                self._read()
                keys = dict(self._keys)
                change(keys)
                self._write(list(keys.values()))
        except OSError as error:
            raise SetupError(
                f"the data folder {self._path.parent} cannot be written ({error.strerror}): choose another with --data"
            ) from error
        self._read()

    def _write(self, keys: list[ApiKey]) -> None:
        """Whole or not at all, and for nobody else's eyes."""
        draft = self._path.with_name(f"{NAME}.new")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            self._give_to_the_folders_owner(descriptor)
            file.write(msgspec.json.format(msgspec.json.encode(keys)))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path)

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Two commands at once do not lose each other's keys."""
        with self._path.with_name(f"{NAME}.lock").open("w") as lock:
            self._give_to_the_folders_owner(lock.fileno())
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _give_to_the_folders_owner(self, descriptor: int) -> None:
        """Whoever makes keys as root does not lock out a server that runs as somebody else."""
        if os.geteuid() == 0:
            folder = self._path.parent.stat()
            os.fchown(descriptor, folder.st_uid, folder.st_gid)
