"""Prevents retention from deleting data when the clock may be wrong: does the I/O for `retention_clock.py`.

Two small files in the data folder preserve the state between restarts. Each has one writer, so neither needs a lock:
the server writes `retention.json`, and `limelight retention confirm` writes `retention-confirmed.json`, with a server
running or not. A server notices a confirmation in its next round of maintenance.
"""

import asyncio
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from limelight.errors import SetupError
from limelight.ids import now_ms
from limelight.runs.retention_clock import (
    DAY_MS,
    Pause,
    RetentionState,
    TrustedTime,
    check_clock,
    trusted_at_start,
)
from limelight.stores.base import Store

log = logging.getLogger(__name__)
STATE = "retention.json"
CONFIRMATION = "retention-confirmed.json"
SAVE_MS = 3600 * 1000
"""Maximum time between two saves of the trusted time, in milliseconds. It is shorter if `max_gap_days` is small."""
T = TypeVar("T")


class Confirmation(msgspec.Struct, frozen=True):
    """A confirmation by an operator that the clock was right when it read `clock_at`."""

    clock_at: int
    pause: Pause
    """The pause that the operator has ended. It is only for people who read the file."""


class RetentionFiles:
    """The files in a data folder with the state of retention. This class never creates the folder."""

    def __init__(self, data: Path) -> None:
        self._data = data

    def load(self) -> RetentionState | None:
        """Return the saved state of retention; None if there is none. Raises SetupError if its file cannot be read."""
        return self._read(STATE, RetentionState)

    def save(self, state: RetentionState) -> None:
        """Save the state of retention. Raises OSError."""
        self._write(STATE, state)

    def confirmed_at(self) -> int:
        """Return the time that the clock showed when an operator last confirmed that it was right; 0 if none did.

        `limelight retention confirm` writes the confirmation. Raises SetupError if its file cannot be read.
        """
        confirmation = self._read(CONFIRMATION, Confirmation)
        return 0 if confirmation is None else confirmation.clock_at

    def confirm(self, confirmation: Confirmation) -> None:
        """Save the confirmation of an operator that the clock is right. Raises SetupError if this fails."""
        try:
            self._write(CONFIRMATION, confirmation)
        except OSError as error:
            raise SetupError(
                f"{self._data / CONFIRMATION} cannot be written ({error.strerror}): run this as the user that the"
                " server runs as"
            ) from error

    def _read(self, name: str, type_: type[T]) -> T | None:
        path = self._data / name
        try:
            return msgspec.json.decode(path.read_bytes(), type=type_)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, msgspec.DecodeError) as error:
            raise SetupError(f"{path} cannot be read ({error}): make it readable, or remove it") from error

    def _write(self, name: str, value: msgspec.Struct) -> None:
        """Write a file of the data folder atomically. Only the owner of the folder can read it, even if root writes."""
        draft = self._data / f"{name}.new"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            if os.geteuid() == 0:
                folder = self._data.stat()
                os.fchown(descriptor, folder.st_uid, folder.st_gid)
            file.write(msgspec.json.format(msgspec.json.encode(value)) + b"\n")
            file.flush()
            os.fsync(descriptor)
        draft.replace(self._data / name)


class RetentionGuard:
    """Decides whether retention may delete data now. Call `open` first, before the store gets new records."""

    def __init__(
        self,
        data: Path,
        max_gap_days: float,
        *,
        clock: Callable[[], int] = now_ms,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._files = RetentionFiles(data)
        self._max_gap_ms = round(max_gap_days * DAY_MS)
        self._save_ms = min(SAVE_MS, self._max_gap_ms // 2) or SAVE_MS
        self._clock = clock
        self._monotonic = monotonic
        self._store: Store | None = None
        self._trusted = TrustedTime(0)
        self._checked_at = 0.0
        """Monotonic time at which `_trusted` was determined."""
        self._confirmed_at: int = 0
        self._saved: RetentionState | None = None
        self._has_warned = False

    @property
    def pause(self) -> Pause | None:
        """The pause of retention; None if retention may delete."""
        return self._trusted.pause

    async def open(self, store: Store) -> None:
        """Determine the trusted time when the server starts, from saved state and store. Raises StoreError."""
        self._store = store
        newest_at = await store.newest_at()
        try:
            self._saved = await asyncio.to_thread(self._files.load)
        except SetupError as error:
            self._warn("the time of the newest record is used in its place: %s", error.detail)
        self._confirmed_at = 0 if self._saved is None else self._saved.confirmed_at
        confirmed_at = self._read_confirmation()
        clock, self._checked_at = self._clock(), self._monotonic()
        self._trusted = trusted_at_start(self._saved, newest_at=newest_at, confirmed_at=confirmed_at, clock_ms=clock)
        self._confirmed_at = confirmed_at

    async def check(self) -> int:
        """Compare the clock with the trusted time, save the outcome if needed, and return the time of the clock.

        Deletions must use the returned time, because the clock may jump later. Raises StoreError.
        """
        confirmed_at = self._read_confirmation()
        clock, monotonic = self._clock(), self._monotonic()
        if confirmed_at != self._confirmed_at:
            self._trusted, self._confirmed_at, self._checked_at = TrustedTime(confirmed_at), confirmed_at, monotonic
        elapsed = round((monotonic - self._checked_at) * 1000)
        self._trusted = check_clock(self._trusted, clock_ms=clock, elapsed_ms=elapsed, max_gap_ms=self._max_gap_ms)
        self._checked_at = monotonic
        await self._save_if_needed()
        return clock

    def _read_confirmation(self) -> int:
        """Return the clock's time in the newest confirmation of an operator.

        If the file is missing or unreadable, return the time of the last applied confirmation. The small file is read
        on the event loop, because agents may occupy all threads.
        """
        try:
            return self._files.confirmed_at() or self._confirmed_at
        except SetupError as error:
            self._warn("confirmations are not seen: %s", error.detail)
            return self._confirmed_at

    async def _save_if_needed(self) -> None:
        saved, now = self._saved, self._trusted
        if (
            saved is not None
            and (saved.trusted.pause, saved.confirmed_at) == (now.pause, self._confirmed_at)
            and abs(now.at - saved.trusted.at) < self._save_ms
        ):
            return
        assert self._store is not None, "open() comes first"
        newest_at = await self._store.newest_at() or 0
        state = RetentionState(trusted=now, newest_at=newest_at, confirmed_at=self._confirmed_at)
        try:
            await asyncio.to_thread(self._files.save, state)
        except OSError as error:
            self._warn("its state cannot be saved, so that retention may be paused after the next start: %s", error)
        else:
            self._saved, self._has_warned = state, False

    def _warn(self, message: str, reason: object) -> None:
        """Log a warning about the retention files, but only once until a save of the state succeeds."""
        if not self._has_warned:
            self._has_warned = True
            log.warning(f"retention: {message}", reason)
