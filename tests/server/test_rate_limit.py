"""The limits of request rates: per user and minute, and of answers that count for no user."""

import asyncio

import pytest

from limelight.errors import TooManyRequests
from limelight.models import LOCAL_OWNER
from limelight.server import rate_limit
from limelight.server.rate_limit import FEW_REQUESTS, RateLimiter, Throttle, client_of
from tests.support.wait import eventually


class Clock:
    """A clock that the test moves."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setattr(rate_limit, "REFUSAL_DELAY_SECONDS", 0)
    return Clock()


async def test_requests_of_a_user_are_refused_until_the_minute_since_the_first_is_over(clock: Clock) -> None:
    limiter = RateLimiter(2, clock)
    await limiter.count("ann")
    clock.now += 59.5
    await limiter.count("ann")
    with pytest.raises(TooManyRequests) as refused:
        await limiter.count("ann")
    assert refused.value.retry_after == 1
    await limiter.count("ben")
    clock.now += 0.5
    await limiter.count("ann")


async def test_local_user_is_not_counted(clock: Clock) -> None:
    limiter = RateLimiter(1, clock)
    for _ in range(3):
        await limiter.count(LOCAL_OWNER)


async def test_ended_windows_are_removed(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "MAX_IDLE_WINDOWS", 10)
    limiter = RateLimiter(1, clock)
    for number in range(100):
        await limiter.count(f"user {number}")
        clock.now += 30
    assert len(limiter._windows) <= 12  # pyright: ignore[reportPrivateUsage]


async def test_requests_within_the_burst_pass_at_once() -> None:
    throttle = Throttle(per_second=0.001, burst=3)
    async with asyncio.timeout(1):
        for _ in range(3):
            await throttle.wait("a")


FLOODS = {
    "one_connection": ["10.0.0.1:1"] * 6,
    "many_connections_of_a_host": [f"10.0.0.1:{port}" for port in range(6)],
    "one_connection_of_the_same_host": ["10.0.0.2:1"] * 6,
}


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
async def test_client_with_fewest_requests_passes_before_a_flood(flood: list[str]) -> None:
    throttle = Throttle(per_second=50, burst=1)
    passed: list[str] = []
    probe = "10.0.0.2:99"

    async def request(client: str) -> None:
        await throttle.wait(client)
        passed.append(client)

    await throttle.wait("10.0.0.3:1")  # the burst
    waiting = [asyncio.create_task(request(client)) for client in flood]
    await asyncio.sleep(0)
    async with asyncio.timeout(10):
        await asyncio.gather(request(probe), *waiting)
    assert passed.index(probe) <= 2
    assert sorted(passed) == sorted([probe, *flood])


async def test_probe_that_repeats_passes_before_many_connections_with_one_request_each() -> None:
    throttle = Throttle(per_second=1000, burst=3)
    probe = "10.0.0.2:99"
    for _ in range(3):  # the burst
        await throttle.wait(probe)
    flood = [asyncio.create_task(throttle.wait(f"10.0.0.1:{port}")) for port in range(2 * FEW_REQUESTS)]
    await asyncio.sleep(0)
    async with asyncio.timeout(10):
        await throttle.wait(probe)
        late = sum(not task.done() for task in flood)
        await asyncio.gather(*flood)
    assert late >= FEW_REQUESTS


async def test_refusals_wait_behind_everything_else() -> None:
    throttle = Throttle(per_second=50, burst=1)
    passed: list[str] = []

    async def request(client: str, *, is_refusal: bool) -> None:
        await throttle.wait(client, is_refusal=is_refusal)
        passed.append(client)

    await throttle.wait("first")
    refusals = [asyncio.create_task(request(f"stranger {n}", is_refusal=True)) for n in range(4)]
    probes = [asyncio.create_task(request("probe", is_refusal=False)) for _ in range(4)]
    async with asyncio.timeout(10):
        await asyncio.gather(*refusals, *probes)
    assert passed[:4] == ["probe"] * 4


async def test_waiting_request_that_is_cancelled_takes_no_turn() -> None:
    throttle = Throttle(per_second=20, burst=1)
    await throttle.wait("a")
    left = asyncio.create_task(throttle.wait("a"))
    stays = asyncio.create_task(throttle.wait("a"))
    await asyncio.sleep(0)
    left.cancel()
    async with asyncio.timeout(10):
        await stays
        await throttle.wait("b")


async def test_requests_of_disconnected_clients_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would stay for as long as other requests come before them."""
    monkeypatch.setattr(rate_limit, "PURGE_LENGTH", 10)
    throttle = Throttle(per_second=0.001, burst=1)
    await throttle.wait("first")
    stays = asyncio.create_task(throttle.wait("patient"))
    await asyncio.sleep(0)
    gone = [asyncio.create_task(throttle.wait("left", is_refusal=True, is_gone=lambda: True)) for _ in range(30)]
    await eventually(lambda: sum(task.done() for task in gone) >= 20)
    assert throttle.waiting <= 11
    assert not stays.done()
    for task in (stays, *gone):
        task.cancel()


def test_client_is_the_connection_or_the_address_that_a_proxy_names() -> None:
    assert client_of({"type": "http", "client": ("10.0.0.1", 4711)}) == "10.0.0.1:4711"
    assert client_of({"type": "http", "client": None}) == ":0"
