"""What the measuring process and the load process say to each other, one JSON line each; and what comes of it all."""

import msgspec


class Order(msgspec.Struct, kw_only=True):
    """What the load opens, and keeps open until its standard input ends."""

    port: int
    sessions: int
    viewers: int
    """Of each session, beside the one that asks."""
    stay_seconds: float
    """How long a viewer stays, in the mean, before it leaves and comes back."""
    seed: int = 1


class Second(msgspec.Struct, kw_only=True):
    """What came in about a second. Latencies are milliseconds, from when a number was due to when it came."""

    numbers: int = 0
    latencies: list[float] = []
    """A sample of them."""
    streams: int = 0
    """Open at its end."""
    resumes: int = 0
    lost: int = 0
    doubled: int = 0
    broken: int = 0
    """Streams that ended without having been left, and requests that were refused."""
    last: bool = False
    """True for the one behind which nothing comes, when everybody has got everything."""
