"""The table of open connections: limits them per address, per user and in total, and chooses which one to close.

`Acceptor` adds connections, and the authentication middleware sets the user of a connection. Pure: the clock is passed
in, and each connection has a function `abort`, which closes it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

import msgspec

from limelight.server.token_bucket import TokenBuckets

Kind = Literal["anonymous", "user", "exempt"]
"""How a connection is limited. `anonymous`: by its address, until a request has authenticated. `user`: by its user.
`exempt`: only by the total, because its key may act for other users, or its user is `local`."""
Reason = Literal["address", "user", "total", "input", "waiting"]
"""Why a connection was closed: too many connections of its address, of its user or in total, too much buffered input,
or too many connections that wait to be opened."""
MIN_AGE_SECONDS = 1.0
"""Age at which an anonymous connection may be closed in favour of a new one. Until then it has time to authenticate."""
BURST_SECONDS = 5
"""The burst of the rate limit of new connections, as the number of seconds in which the rate allows so many."""
MAX_INPUT_BYTES = 32 * 1024 * 1024
"""Limit in bytes of the buffered input of all anonymous connections together."""
MAX_USER_INPUT_BYTES = 64 * 1024 * 1024
"""Limit in bytes of the buffered input of all connections of a user, without bodies, which have their own limit."""
MAX_AUTHENTICATED_INPUT_BYTES = 256 * 1024 * 1024
"""Limit in bytes of the buffered input of all connections with a key together."""


class ConnectionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of open connections, and of new connections per second and address. They are settings."""

    total: int = 4096
    per_address: int = 256
    per_user: int = 256
    per_second: float = 200


class Connection:
    """The entry of an open connection in the table."""

    def __init__(self, table: "ConnectionTable", peer: str, now: float) -> None:
        self.table = table
        self.peer = peer
        """The network address of the other end, which may be a proxy."""
        self.kind: Kind = "anonymous"
        self.owner = peer
        """The key under which the connection is counted: the client's address while anonymous, then the user id."""
        self.since = now
        self.input_bytes = 0
        self.abort: Callable[[], None] = _do_nothing
        self.is_idle: Callable[[], bool] = _is_not_idle


def _do_nothing() -> None: ...


def _is_not_idle() -> bool:
    return False


def _input_of(connection: Connection) -> int:
    return connection.input_bytes


def _total_input(group: Iterable[Connection]) -> int:
    return sum(map(_input_of, group))


class ConnectionTable:
    """Counts open connections by address or user, and closes connections beyond a limit in a fair order.

    Connections that have not authenticated are closed first, those of the address with the most of them, the oldest
    first. Only if there are none, an idle connection of the user with the most connections is closed.
    """

    def __init__(
        self, limits: ConnectionLimits, clock: Callable[[], float], count_closed: Callable[[Reason], None]
    ) -> None:
        self.limits = limits
        self._clock = clock
        self._count_closed = count_closed
        self._new = TokenBuckets(max(1, round(limits.per_second * BURST_SECONDS)), limits.per_second, clock)
        self._groups: dict[Kind, dict[str, dict[Connection, None]]] = {"anonymous": {}, "user": {}, "exempt": {}}
        self._exempt_peers: Counter[str] = Counter()
        """Number of exempt connections by address."""
        self._size = 0
        self._input: dict[Kind, int] = {"anonymous": 0, "user": 0, "exempt": 0}
        """Bytes of buffered input by kind of connection."""
        self._user_input: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._size

    def counts(self) -> dict[Kind, int]:
        """Return the number of open connections of each kind."""
        return {kind: sum(map(len, groups.values())) for kind, groups in self._groups.items()}

    def open(self, peer: str, *, is_rate_limited: bool = True) -> Connection | None:
        """Add a connection, and close another one if there are too many. Returns None if the new one has to wait.

        `is_rate_limited`: whether to limit the rate of new connections of this address. An address with an open exempt
        connection is never limited.
        """
        victim, reason = self._connection_to_replace(peer)
        if victim is None and reason is not None:
            return None
        if victim is not None and victim.kind == "anonymous" and self._clock() - victim.since < MIN_AGE_SECONDS:
            return None
        if is_rate_limited and not self._exempt_peers[peer] and not self._new.spend(peer):
            return None
        return self._replace(victim, reason, peer)

    def open_at_once(self, peer: str) -> Connection:
        """Add a connection that must not wait. For it, a young connection is closed, or the total limit exceeded."""
        return self._replace(*self._connection_to_replace(peer), peer)

    def _connection_to_replace(self, peer: str) -> tuple[Connection | None, Reason | None]:
        """Return the connection to close for a new one, and the limit that is reached.

        The limit is None if there is room for a new connection. The connection is None if none can be closed.
        """
        group = self._groups["anonymous"].get(peer, {})
        if len(group) >= self.limits.per_address:
            return next(iter(group)), "address"
        if self._size >= self.limits.total:
            return self._connection_to_close(), "total"
        return None, None

    def _replace(self, victim: Connection | None, reason: Reason | None, peer: str) -> Connection:
        if victim is not None and reason is not None:
            self._evict(victim, reason)
        connection = Connection(self, peer, self._clock())
        self._add(connection)
        return connection

    def close(self, connection: Connection) -> None:
        """Remove a closed connection from the table. Does nothing if it is not in the table."""
        self._remove(connection)

    def forward(self, connection: Connection, address: str) -> None:
        """Count a connection of a proxy for `address`, the client of its request, until the request is authenticated.

        If the client has too many connections, its oldest one is closed.
        """
        self._move(connection, "anonymous", address)
        group = self._groups["anonymous"].get(address, {})
        if len(group) > self.limits.per_address:
            self._evict(next(iter(group)), "address")

    def authenticate(self, connection: Connection, user_id: str, *, is_exempt: bool) -> bool:
        """Count a connection for its user, after a request has authenticated. Return False if the user has too many.

        At the limit, an idle connection of the user is closed instead, if there is one.
        """
        kind: Kind = "exempt" if is_exempt else "user"
        if (connection.kind, connection.owner) == (kind, user_id):
            return True
        group = self._groups[kind].get(user_id, {})
        if not is_exempt and len(group) >= self.limits.per_user:
            idle = next((other for other in group if other.is_idle()), None)
            if idle is None:
                return False
            self._evict(idle, "user")
        self._move(connection, kind, user_id)
        return True

    def set_input_size(self, connection: Connection, size: int) -> bool:
        """Set the size of the buffered input of a connection. Return whether there is too much input."""
        if self._is_open(connection):
            self._count_input(connection, size - connection.input_bytes)
        connection.input_bytes = size
        return self._group_with_too_much_input() is not None

    def close_largest_inputs(self) -> None:
        """Close connections until their buffered input is below all limits.

        Each time, the connection with the most input is closed, of the address or user with the most input.
        """
        while group := self._group_with_too_much_input():
            self._evict(max(group, key=_input_of), "input")

    def _group_with_too_much_input(self) -> dict[Connection, None] | None:
        """Return the connections of the address or user that has to lose one because of its input; None for none."""
        if self._input["anonymous"] > MAX_INPUT_BYTES:
            return max(self._groups["anonymous"].values(), key=_total_input)
        if self._input["user"] > MAX_USER_INPUT_BYTES:
            user, size = self._user_input.most_common(1)[0]
            if size > MAX_USER_INPUT_BYTES:
                return self._groups["user"][user]
        if self._input["user"] + self._input["exempt"] > MAX_AUTHENTICATED_INPUT_BYTES:
            groups = [*self._groups["user"].values(), *self._groups["exempt"].values()]
            return max(groups, key=_total_input)
        return None

    def _count_input(self, connection: Connection, size: int) -> None:
        self._input[connection.kind] += size
        if connection.kind == "user":
            self._user_input[connection.owner] += size
            if not self._user_input[connection.owner]:
                del self._user_input[connection.owner]

    def count_closed(self, reason: Reason) -> None:
        """Count a connection that was closed before it was added to the table."""
        self._count_closed(reason)

    def _connection_to_close(self) -> Connection | None:
        """Return the connection to close when there are too many in total; None if all connections are in use."""
        if anonymous := self._groups["anonymous"]:
            return next(iter(max(anonymous.values(), key=len)))
        return next((connection for connection in self._by_user_share() if connection.is_idle()), None)

    def _by_user_share(self) -> Iterator[Connection]:
        """Yield authenticated connections, those of the user with the most connections first."""
        groups = [*self._groups["user"].values(), *self._groups["exempt"].values()]
        for group in sorted(groups, key=len, reverse=True):
            yield from group

    def _evict(self, connection: Connection, reason: Reason) -> None:
        self._remove(connection)
        self._count_closed(reason)
        connection.abort()

    def _move(self, connection: Connection, kind: Kind, owner: str) -> None:
        if (connection.kind, connection.owner) == (kind, owner) or not self._is_open(connection):
            return
        self._remove(connection)
        connection.kind, connection.owner, connection.since = kind, owner, self._clock()
        self._add(connection)

    def _is_open(self, connection: Connection) -> bool:
        return connection in self._groups[connection.kind].get(connection.owner, ())

    def _add(self, connection: Connection) -> None:
        self._groups[connection.kind].setdefault(connection.owner, {})[connection] = None
        self._size += 1
        self._count_input(connection, connection.input_bytes)
        if connection.kind == "exempt":
            self._exempt_peers[connection.peer] += 1

    def _remove(self, connection: Connection) -> None:
        if not self._is_open(connection):
            return
        groups = self._groups[connection.kind]
        group = groups[connection.owner]
        del group[connection]
        self._size -= 1
        if not group:
            del groups[connection.owner]
        self._count_input(connection, -connection.input_bytes)
        if connection.kind == "exempt":
            self._exempt_peers[connection.peer] -= 1
            if not self._exempt_peers[connection.peer]:
                del self._exempt_peers[connection.peer]
