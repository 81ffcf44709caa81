"""Whether the database takes what is written. Says so in the log when trouble begins and when it ends, and not between.

The writer asks before each commit and tells how it went; everything here runs on its thread, but for `unanswered`.
"""

import logging
from collections.abc import Callable
from pathlib import Path

from limelight.errors import StoreUnavailable
from limelight.stores.sqlite.trouble import SILENT, Trouble, trouble_of

log = logging.getLogger(__name__)


class Health:
    """One database's. `look` finds trouble that shows before anything is written."""

    def __init__(self, path: Path, look: Callable[[], Trouble | None]) -> None:
        self._path = path
        self._look = look
        self._trouble: Trouble | None = None

    def check(self) -> StoreUnavailable | None:
        """The refusal of everything, if nothing may be written now."""
        trouble = self._look()
        if trouble is None:
            return None
        self._begin(trouble)
        return _refusal(trouble)

    def failed(self, error: Exception) -> StoreUnavailable:
        """The refusal of what could not be written."""
        trouble = trouble_of(error, self._path)
        if trouble is None:
            return StoreUnavailable(f"the database cannot be written: {error}")
        self._begin(trouble)
        return _refusal(trouble)

    def works(self) -> None:
        if self._trouble is not None:
            self._trouble = None
            log.warning("%s can be written again: what had to wait is written now", self._path)

    def unanswered(self) -> StoreUnavailable:
        """The refusal of somebody who has waited long enough."""
        return _refusal(self._trouble or SILENT)

    def _begin(self, trouble: Trouble) -> None:
        if trouble != self._trouble:
            self._trouble = trouble
            told = "live runs wait, new ones are refused"
            log.error("%s cannot be written: %s; %s. What to do: %s", self._path, trouble.words, told, trouble.fix)


def _refusal(trouble: Trouble) -> StoreUnavailable:
    detail = f"the database cannot be written: {trouble.words}; try again when that is mended"
    return StoreUnavailable(detail, words=trouble.words)
