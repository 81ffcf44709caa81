"""The file with the API keys of a data folder. The server reads it, and `limelight keys` writes it.

The keys are not in the store, because a command changes them while a server has the store open, and because every
request checks them. A write replaces the file atomically. A reader parses the file only if it has changed.
"""

import fcntl
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from limelight.auth.api_keys import ApiKey, make_key, parse_key
from limelight.auth.identity import Scope
from limelight.errors import SetupError

NAME = "keys.json"
_Stamp = tuple[int, int, int]
"""Inode, modification time and size of the key file, to detect changes."""


class Keyring:
    """The API keys of a data folder, including revoked ones: creates, finds and revokes them."""

    def __init__(self, data: Path) -> None:
        self._path = data / NAME
        self._stamp: _Stamp | None = None
        self._keys: dict[str, ApiKey] = {}

    def has_any(self) -> bool:
        """Whether the data folder has any API key. Revoked keys count: revoking the last one must not open a server."""
        self._read()
        return bool(self._keys)

    def all(self) -> list[ApiKey]:
        """Return all keys, including revoked ones, in the order of their creation."""
        self._read()
        return list(self._keys.values())

    def find(self, text: str) -> ApiKey | None:
        """Return the stored key that matches the text from a client; None if the key is unknown, wrong or revoked."""
        parsed = parse_key(text)
        if parsed is None:
            return None
        self._read()
        key = self._keys.get(parsed.key_id)
        return key if key is not None and key.accepts(parsed.secret) else None

    def create(self, user: str, scopes: tuple[Scope, ...], at: int) -> tuple[ApiKey, str]:
        """Create and store a key. Return the stored key, and the text with the secret for its owner."""
        key, text = make_key(user, scopes, at)
        self._change(lambda keys: keys.update({key.key_id: key}))
        return key, text

    def revoke(self, key_id: str, at: int) -> ApiKey | None:
        """Revoke a key and return it; None if it does not exist. A key that is already revoked is not changed."""

        def change(keys: dict[str, ApiKey]) -> None:
            key = keys.get(key_id)
            if key is not None and key.revoked_at is None:
                keys[key_id] = msgspec.structs.replace(key, revoked_at=at)

        self._read()
        if key_id in self._keys:
            self._change(change)
        return self._keys.get(key_id)

    def _read(self) -> None:
        """Reload the keys from the key file if the file has changed.

        Raises SetupError if the file cannot be read, or if a file that had keys is missing or empty. Otherwise a lost
        file would open the server to callers without a key.
        """
        try:
            found = self._path.stat()
            stamp = (found.st_ino, found.st_mtime_ns, found.st_size)
            if stamp == self._stamp:
                return
            keys = msgspec.json.decode(self._path.read_bytes(), type=list[ApiKey])
        except (FileNotFoundError, NotADirectoryError) as error:
            if self._keys:
                raise self._keys_lost() from error
            return
        except (OSError, msgspec.DecodeError) as error:
            raise SetupError(f"{self._path} cannot be read ({error}): restore a copy of it") from error
        if self._keys and not keys:
            raise self._keys_lost()
        self._stamp, self._keys = stamp, {key.key_id: key for key in keys}

    def _keys_lost(self) -> SetupError:
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
        """Replace the key file atomically. Only its owner may read the new file."""
        draft = self._path.with_name(f"{NAME}.new")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            self._chown_to_folder_owner(descriptor)
            file.write(msgspec.json.format(msgspec.json.encode(keys)))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path)

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Hold the lock of the key file, so that concurrent commands do not overwrite each other's keys."""
        lock = os.open(self._path.with_name(f"{NAME}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.fchmod(lock, 0o600)  # an earlier version created it with the permissions of the umask
            self._chown_to_folder_owner(lock)
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _chown_to_folder_owner(self, descriptor: int) -> None:
        """Change the owner of a file that root creates to the owner of the folder, so that the server can read it."""
        if os.geteuid() == 0:
            folder = self._path.parent.stat()
            os.fchown(descriptor, folder.st_uid, folder.st_gid)
