"""The throttle bounds the rate of answers that no user pays for, and a client with few requests passes a flood."""

import asyncio

from limelight.server.rate_limit import Throttle, client_of


async def test_requests_within_the_burst_pass_at_once() -> None:
    throttle = Throttle(per_second=0.001, burst=3)
    async with asyncio.timeout(1):
        for _ in range(3):
            await throttle.wait("a")


async def test_client_with_fewest_requests_passes_before_a_flood() -> None:
    throttle = Throttle(per_second=50, burst=1)
    passed: list[str] = []

    async def request(client: str) -> None:
        await throttle.wait(client)
        passed.append(client)

    flood = [asyncio.create_task(request("flood")) for _ in range(6)]
    await asyncio.sleep(0)
    probe = asyncio.create_task(request("probe"))
    async with asyncio.timeout(10):
        await asyncio.gather(*flood, probe)
    assert passed.index("probe") <= 1
    assert passed.count("flood") == 6


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


def test_client_is_the_connection_or_the_address_that_a_proxy_names() -> None:
    assert client_of({"type": "http", "client": ("10.0.0.1", 4711)}) == "10.0.0.1:4711"
    assert client_of({"type": "http", "client": None}) == ":0"
