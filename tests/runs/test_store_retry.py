"""Retries of store operations."""

import pytest

from limelight.errors import StoreUnavailable
from limelight.runs import store_retry
from limelight.runs.store_retry import TRIES_UNEXPLAINED, retry_while_unavailable


class Failing:
    """A store that fails `times` times; `words` name the fault, or are empty."""

    def __init__(self, times: int, words: str) -> None:
        self.left = times
        self._words = words

    async def work(self) -> str:
        if not self.left:
            return "done"
        self.left -= 1
        raise StoreUnavailable("it fails", words=self._words)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_retry, "RETRY_SECONDS", (0.0,))


async def test_operation_is_retried_until_the_store_works() -> None:
    assert await retry_while_unavailable(Failing(100, "the disk is full").work) == "done"
    assert await retry_while_unavailable(Failing(TRIES_UNEXPLAINED, "").work) == "done"


async def test_retries_without_a_named_fault_are_limited() -> None:
    store = Failing(100, "")
    with pytest.raises(StoreUnavailable):
        await retry_while_unavailable(store.work)
    assert store.left == 100 - TRIES_UNEXPLAINED - 1
