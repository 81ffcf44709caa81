"""The address of a client behind trusted proxies, from `X-Forwarded-For` or `Forwarded`.

uvicorn's middleware for this does not support `Forwarded`, accepts any text as an address, and does not recognize an
IPv4 proxy on a dual-stack socket, where its address has the IPv6 form `::ffff:1.2.3.4`.
"""

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence

from starlette.types import ASGIApp, Receive, Scope, Send

from limelight.config import Settings
from limelight.errors import SetupError
from limelight.server.process.connection_table import Connection

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
SCHEMES = {b"http": "http", b"https": "https", b"ws": "http", b"wss": "https"}
IPV6_PREFIX = 64
"""Length in bits of the IPv6 prefix that a provider assigns to one customer, who can use every address with it."""
_FOR = re.compile(r'(?:^|;)\s*for\s*=\s*("[^"]*"|[^;\s]*)', re.IGNORECASE)
_PORT = re.compile(r"(?:\[(?P<v6>[^\]]*)\]|(?P<v4>[0-9.]+))(?::[0-9]+)?")


class TrustedProxies:
    """The proxies whose headers name the client of a request."""

    def __init__(self, networks: Iterable[Network]) -> None:
        self._networks = tuple(networks)

    @classmethod
    def from_settings(cls, settings: Settings) -> "TrustedProxies":
        """Read the setting `trusted_proxies`. Raises SetupError for a value that is not an address or a network."""
        return cls(_network(value, settings) for value in settings.server.trusted_proxies)

    def __contains__(self, host: str) -> bool:
        address = parse_address(host)
        return address is not None and any(address in network for network in self._networks)

    def client(self, peer: str, headers: Sequence[tuple[bytes, bytes]]) -> str | None:
        """Return the address of the client that a trusted proxy names in a header; None without such a header.

        It is the last address that is not a trusted proxy's: a client can forge only the addresses before it. If both
        headers are present and differ, the client may have forged one. The result is then a name that all such clients
        share, so that they share one limit.
        """
        by_name: dict[bytes, list[str]] = {}
        for name, value in headers:
            if name in (b"x-forwarded-for", b"forwarded"):
                by_name.setdefault(name, []).extend(value.decode("latin-1").split(","))
        if not by_name:
            return None
        found = {self._last_untrusted(name, values) for name, values in by_name.items()}
        return found.pop() if len(found) == 1 else f"behind {peer}"

    def _last_untrusted(self, name: bytes, values: Sequence[str]) -> str:
        hosts = [_forwarded_for(value) if name == b"forwarded" else value for value in values]
        addresses = [parse_address(_without_port(host)) for host in hosts]
        for address in reversed(addresses):
            if address is None:
                return "unknown"
            if str(address) not in self:
                return str(address)
        return str(addresses[0])


def parse_address(host: str) -> Address | None:
    """Parse an IP address; an IPv4 address in IPv6 notation becomes IPv4. None if the text is not an address."""
    try:
        address = ipaddress.ip_address(host.strip().partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def address_group(host: str) -> str:
    """Return the key under which limits count a client: its IPv4 address, or the prefix of its IPv6 address."""
    address = parse_address(host)
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address, IPV6_PREFIX), strict=False))
    return host if address is None else str(address)


def _network(value: str, settings: Settings) -> Network:
    try:
        return ipaddress.ip_network(value)
    except ValueError as error:
        reason = "is neither an address nor a network such as 10.0.0.0/8"
        place = settings.origin.place("server", "trusted_proxies")
        raise SetupError(f"{place}server.trusted_proxies: {value!r} {reason}") from error


def _forwarded_for(element: str) -> str:
    """Return the value of `for` in an element of `Forwarded` (RFC 7239)."""
    found = _FOR.search(element)
    return found[1].strip('"') if found else ""


def _without_port(host: str) -> str:
    found = _PORT.fullmatch(host.strip())
    return host if found is None else found["v6"] or found["v4"] or ""


class ForwardedMiddleware:
    """Sets the client address and the scheme of a request to those that a trusted proxy names in headers."""

    def __init__(self, app: ASGIApp, proxies: TrustedProxies) -> None:
        self._app = app
        self._proxies = proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        peer = scope.get("client")
        if scope["type"] in ("http", "websocket") and peer is not None and peer[0] in self._proxies:
            self._apply(scope, peer[0])
        await self._app(scope, receive, send)

    def _apply(self, scope: Scope, peer: str) -> None:
        headers: Mapping[bytes, bytes] = dict(scope["headers"])
        scheme = SCHEMES.get(headers.get(b"x-forwarded-proto", b"").strip())
        if scheme is not None:
            scope["scheme"] = scheme.replace("http", "ws") if scope["type"] == "websocket" else scheme
        client = self._proxies.client(peer, scope["headers"])
        if client is not None:
            scope["client"] = (client, 0)
            connection: Connection | None = scope.get("state", {}).get("connection")
            if connection is not None:
                connection.table.forward(connection, address_group(client))
