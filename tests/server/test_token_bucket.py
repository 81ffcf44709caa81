"""Token buckets."""

from limelight.server.token_bucket import TokenBucket, TokenBuckets


class Clock:
    """A clock that the test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_bucket_allows_a_burst_and_then_its_rate() -> None:
    clock = Clock()
    bucket = TokenBucket(3, 2, clock)
    assert [bucket.spend() for _ in range(5)] == [True, True, True, False, False]
    clock.now += 1
    assert [bucket.spend() for _ in range(3)] == [True, True, False]


def test_bucket_never_holds_more_than_its_burst() -> None:
    clock = Clock()
    bucket = TokenBucket(3, 2, clock)
    clock.now += 1000
    assert [bucket.spend() for _ in range(4)] == [True, True, True, False]


def test_each_key_has_a_bucket_and_the_least_recently_used_is_dropped() -> None:
    buckets = TokenBuckets(1, 0, Clock(), max_keys=2)
    assert [buckets.spend(name) for name in "aabb"] == [True, False, True, False]
    assert buckets.spend("c")  # `a` is forgotten
    assert buckets.spend("a")
    assert not buckets.spend("c")
