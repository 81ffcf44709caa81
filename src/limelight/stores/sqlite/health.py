"""Whether the database takes what is written. Says so in the log when trouble begins and when it ends, and not between.

A disk that is full may still take a little. So trouble is over only when what could not be written is written; until
then nothing new is begun. A file that is damaged may still take a lot, and give back half of it: that is never over,
and nothing is written to it any more. The writer asks before each commit and tells how it went, on its thread; readers
tell what they met, and others only look.
"""

import logging
from collections.abc import Callable, Collection
from pathlib import Path

from limelight.errors import StoreUnavailable
from limelight.stores.sqlite.faults import DAMAGED, FAILING, SILENT, Trouble, trouble_of

log = logging.getLogger(__name__)


class Health:
    """One database's. `look` finds trouble that shows before anything is written."""

    def __init__(self, path: Path, look: Callable[[], Trouble | None]) -> None:
        self._path = path
        self._look = look
        self._trouble: Trouble | None = None
        self._reads_fail = False
        self._waiting: set[str] = set()
        """The runs that have something to write which was refused, and will come again with it."""

    @property
    def is_failing(self) -> bool:
        """Whether it is known that something cannot be written or read."""
        return self._trouble is not None or self._reads_fail

    def check(self, waiting: Collection[str]) -> StoreUnavailable | None:
        """The refusal of everything, if nothing may be written now. These runs will come again."""
        trouble = DAMAGED if self._trouble is DAMAGED else self._look()
        return None if trouble is None else self._begin(trouble, waiting)

    def failed(self, error: Exception, waiting: Collection[str]) -> StoreUnavailable:
        """The refusal of what could not be written. These runs will come again."""
        trouble = trouble_of(error, self._path)
        if trouble is None:
            return StoreUnavailable(f"the database cannot be written: {error}")
        return self._begin(trouble, waiting)

    def works(self, written: Collection[str]) -> None:
        """Something was written, and all that these runs had."""
        self._waiting.difference_update(written)
        if self._trouble not in (None, DAMAGED) and not self._waiting:
            self._trouble = None
            log.warning("%s can be written again: what had to wait is written", self._path)

    def raise_if_held_up(self) -> None:
        """Raises StoreUnavailable while runs wait for what could not be written, and if that is for ever."""
        trouble = self._trouble
        if trouble is not None and (self._waiting or trouble is DAMAGED):
            raise _refusal(trouble)

    def could_not_read(self, error: Exception) -> None:
        """Something could not be read, which is told once until something can be."""
        if trouble_of(error, self._path) is DAMAGED:
            self._begin(DAMAGED, ())
        elif not self._reads_fail:
            self._reads_fail = True
            log.error("%s cannot be read: %s. What to do: %s", self._path, error, FAILING.fix)

    def could_read(self) -> None:
        if self._reads_fail:
            self._reads_fail = False
            log.warning("%s can be read again", self._path)

    def unanswered(self) -> StoreUnavailable:
        """The refusal of somebody who has waited long enough."""
        return _refusal(self._trouble or SILENT)

    def _begin(self, trouble: Trouble, waiting: Collection[str]) -> StoreUnavailable:
        self._waiting.update(waiting)
        if trouble != self._trouble and self._trouble is not DAMAGED:
            self._trouble = trouble
            told = "live runs wait, new ones are refused"
            log.error("%s cannot be written: %s; %s. What to do: %s", self._path, trouble.words, told, trouble.fix)
        return _refusal(trouble)


def _refusal(trouble: Trouble) -> StoreUnavailable:
    detail = f"the database cannot be written: {trouble.words}; try again when that is mended"
    return StoreUnavailable(detail, words=trouble.words)
