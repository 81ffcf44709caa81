"""Token buckets."""

from limelight.runs.limits import TokenBucket, TokenBuckets


class Clock:
    """A clock that the test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_budget_allows_a_burst_and_then_its_rate() -> None:
    clock = Clock()
    budget = TokenBucket(3, 2, clock)
    assert [budget.spend() for _ in range(5)] == [True, True, True, False, False]
    clock.now += 1
    assert [budget.spend() for _ in range(3)] == [True, True, False]


def test_budget_never_saves_more_than_its_burst() -> None:
    clock = Clock()
    budget = TokenBucket(3, 2, clock)
    clock.now += 1000
    assert [budget.spend() for _ in range(4)] == [True, True, True, False]


def test_each_name_has_a_budget_and_the_least_recent_is_forgotten() -> None:
    budgets = TokenBuckets(1, 0, Clock(), max_keys=2)
    assert [budgets.spend(name) for name in "aabb"] == [True, False, True, False]
    assert budgets.spend("c")  # `a` is forgotten
    assert budgets.spend("a")
    assert not budgets.spend("c")
