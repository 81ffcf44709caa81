"""The table of connections: whose connection is closed when there are too many, and who has to wait."""

from collections import Counter

import pytest

from limelight.server.process import connection_table
from limelight.server.process.connection_table import (
    MIN_AGE_SECONDS,
    Connection,
    ConnectionLimits,
    ConnectionTable,
    Reason,
)


class Clock:
    """A clock that the test moves."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


class Table:
    """A table with small limits, and what it has closed."""

    def __init__(self, total: int = 100, per_address: int = 100, per_user: int = 100, per_second: float = 1000) -> None:
        self.clock = Clock()
        self.reasons: Counter[Reason] = Counter()
        self.closed: list[Connection] = []
        limits = ConnectionLimits(total=total, per_address=per_address, per_user=per_user, per_second=per_second)
        self.table = ConnectionTable(limits, self.clock, self.count)

    def count(self, reason: Reason) -> None:
        self.reasons[reason] += 1

    def opened(self, peer: str, user_id: str = "", *, is_idle: bool = False, is_exempt: bool = False) -> Connection:
        connection = self.table.open(peer)
        assert connection is not None
        connection.abort = lambda: self.closed.append(connection)
        connection.is_idle = lambda: is_idle
        if user_id or is_exempt:
            assert self.table.authenticate(connection, user_id, is_exempt=is_exempt)
        return connection

    def later(self) -> None:
        self.clock.now += MIN_AGE_SECONDS + 0.1


def test_connection_that_must_not_wait_replaces_a_young_one_of_its_address() -> None:
    small = Table(per_address=1, per_second=0.2)
    first = small.opened("a")
    assert small.table.open("a") is None
    assert small.table.open_at_once("a").owner == "a"
    assert small.closed == [first]


def test_connection_that_must_not_wait_exceeds_the_total_limit_if_all_others_are_in_use() -> None:
    small = Table(total=1)
    small.opened("a", "ann")
    assert small.table.open("b") is None
    small.table.open_at_once("b")
    assert (len(small.table), small.closed) == (2, [])


def test_oldest_anonymous_connection_of_an_address_makes_room_for_its_next_one() -> None:
    small = Table(per_address=2)
    first, _ = small.opened("a"), small.opened("a")
    small.later()
    small.opened("a")
    small.opened("b")
    assert small.closed == [first]
    assert small.reasons == {"address": 1}
    assert len(small.table) == 3


def test_new_connection_waits_while_those_of_its_address_have_just_begun() -> None:
    small = Table(per_address=2)
    first, _ = small.opened("a"), small.opened("a")
    assert small.table.open("a") is None
    assert small.table.open("b") is not None
    small.table.authenticate(first, "ann", is_exempt=False)
    assert small.table.open("a") is not None
    assert small.closed == []


def test_authenticated_connections_do_not_count_for_their_address() -> None:
    small = Table(per_address=2)
    for number in range(10):
        small.opened("a", f"user {number}")
    assert small.table.counts() == {"anonymous": 0, "user": 10, "exempt": 0}


def test_address_with_most_anonymous_connections_loses_one_when_there_are_too_many_in_all() -> None:
    small = Table(total=10)
    ann = small.opened("a", "ann")
    single = small.opened("b")
    flood = [small.opened("c") for _ in range(8)]
    small.later()
    small.opened("d")
    assert small.closed == [flood[0]]
    assert small.reasons == {"total": 1}
    assert ann not in small.closed and single not in small.closed


def test_idle_connection_of_the_largest_user_is_closed_when_all_have_authenticated() -> None:
    small = Table(total=4)
    small.opened("a", "ann", is_idle=True)
    busy = small.opened("b", "ben")
    idle = small.opened("b", "ben", is_idle=True)
    small.opened("b", "ben", is_idle=True)
    small.opened("c")
    assert small.closed == [idle]
    assert busy not in small.closed


def test_new_connection_waits_when_all_others_are_used() -> None:
    small = Table(total=2)
    used = small.opened("a", "ann")
    small.opened("a", "ann")
    assert small.table.open("b") is None
    small.table.close(used)
    assert small.table.open("b") is not None


def test_user_with_too_many_connections_loses_an_idle_one_or_gets_no_more() -> None:
    small = Table(per_user=2)
    idle = small.opened("a", "ann", is_idle=True)
    small.opened("a", "ann")
    small.opened("a", "ann")
    assert small.closed == [idle]
    assert small.reasons == {"user": 1}
    refused = small.opened("a")
    assert not small.table.authenticate(refused, "ann", is_exempt=False)
    assert refused.kind == "anonymous"
    assert small.table.authenticate(refused, "ben", is_exempt=False)


def test_exempt_connections_have_only_the_limit_of_all() -> None:
    small = Table(per_user=2, per_address=2)
    for _ in range(10):
        small.opened("a", is_exempt=True)
    assert small.table.counts()["exempt"] == 10


def test_new_connections_of_an_address_have_a_rate_and_those_of_others_do_not_use_it() -> None:
    small = Table(per_second=1)
    assert [small.table.open("a") is not None for _ in range(6)] == [True] * 5 + [False]
    assert small.table.open("b") is not None
    assert small.table.open("a", is_rate_limited=False) is not None
    small.clock.now += 1
    assert small.table.open("a") is not None


def test_address_of_a_connected_backend_has_no_rate() -> None:
    small = Table(per_second=1)
    backend = small.opened("a", is_exempt=True)
    for _ in range(20):
        small.opened("a")
    small.table.close(backend)
    assert [small.table.open("a") is not None for _ in range(5)].count(False) >= 1


def test_connection_of_a_proxy_counts_for_the_client_whose_request_it_carries() -> None:
    small = Table(per_address=2)
    pool = [small.opened("proxy", "ann") for _ in range(3)]
    for connection in pool:
        small.table.forward(connection, "203.0.113.9")
    assert small.closed == [pool[0]]
    assert (pool[2].kind, pool[2].owner) == ("anonymous", "203.0.113.9")
    small.table.forward(small.opened("proxy"), "203.0.113.10")
    assert small.closed == [pool[0]]


def test_connection_that_was_closed_stays_closed() -> None:
    small = Table()
    connection = small.opened("a")
    small.table.close(connection)
    small.table.close(connection)
    small.table.forward(connection, "b")
    small.table.authenticate(connection, "ann", is_exempt=False)
    small.table.set_input_size(connection, 10**9)
    assert len(small.table) == 0


def test_largest_input_of_the_address_with_most_input_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_table, "MAX_INPUT_BYTES", 100)
    small = Table()
    one, two, other, ann = small.opened("a"), small.opened("a"), small.opened("b"), small.opened("c", "ann")
    assert not small.table.set_input_size(ann, 101)
    assert not small.table.set_input_size(one, 40)
    assert not small.table.set_input_size(other, 60)
    assert small.table.set_input_size(two, 41)
    small.table.close_largest_inputs()
    assert small.closed == [two]
    assert small.reasons == {"input": 1}
    small.table.authenticate(one, "ann", is_exempt=False)
    assert not small.table.set_input_size(other, 100)


def test_input_of_a_connection_that_authenticates_counts_for_its_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_table, "MAX_INPUT_BYTES", 100)
    monkeypatch.setattr(connection_table, "MAX_USER_INPUT_BYTES", 150)
    small = Table()
    connection, other = small.opened("a"), small.opened("a")
    assert small.table.set_input_size(connection, 101)
    small.table.authenticate(connection, "ann", is_exempt=False)
    assert not small.table.set_input_size(other, 100)
    small.table.close_largest_inputs()
    assert small.closed == []
    second = small.opened("b", "ann")
    assert not small.table.set_input_size(second, 49)
    assert small.table.set_input_size(second, 50)
    small.table.close_largest_inputs()
    assert small.closed == [connection]


def test_user_with_most_input_loses_a_connection_if_all_users_have_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_table, "MAX_USER_INPUT_BYTES", 100)
    monkeypatch.setattr(connection_table, "MAX_AUTHENTICATED_INPUT_BYTES", 200)
    small = Table()
    ann, ben, cem = small.opened("a", "ann"), small.opened("b", "ben"), small.opened("c", "cem")
    assert not small.table.set_input_size(ann, 90)
    assert not small.table.set_input_size(ben, 60)
    assert small.table.set_input_size(cem, 70)
    small.table.close_largest_inputs()
    assert small.closed == [ann]
    small.table.close(ben)
    assert not small.table.set_input_size(cem, 100)
