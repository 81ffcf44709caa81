"""Clients behind trusted proxies: their address comes from the proxy, and never from themselves."""

import ipaddress
from typing import Any

import pytest

from limelight.config import load_settings
from limelight.errors import SetupError
from limelight.server.middleware.client_address import ForwardedMiddleware, TrustedProxies, address_group

PROXIES = TrustedProxies(ipaddress.ip_network(network) for network in ("10.0.0.0/8", "127.0.0.1", "2001:db8:1::/48"))
PEER = "10.0.0.1"


def client(*headers: tuple[str, str]) -> str | None:
    return PROXIES.client(PEER, [(name.encode(), value.encode("latin-1")) for name, value in headers])


@pytest.mark.requirement("forwarded-address")
@pytest.mark.parametrize(
    ("header", "address"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("1.2.3.4, 203.0.113.9", "203.0.113.9"),
        ("1.2.3.4, 203.0.113.9, 10.1.1.1", "203.0.113.9"),
        ("203.0.113.9:4711", "203.0.113.9"),
        ("[2001:db8::9]:4711", "2001:db8::9"),
        ("2001:db8::9", "2001:db8::9"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("10.1.1.1, 10.2.2.2", "10.1.1.1"),
        ("1.2.3.4, garbage", "unknown"),
        ("", "unknown"),
    ],
)
def test_client_is_the_last_address_that_is_not_a_proxy(header: str, address: str) -> None:
    assert client(("x-forwarded-for", header)) == address


@pytest.mark.parametrize(
    ("header", "address"),
    [
        ("for=203.0.113.9", "203.0.113.9"),
        ("proto=https;for=203.0.113.9;by=10.0.0.1", "203.0.113.9"),
        ('For="[2001:db8::9]:4711"', "2001:db8::9"),
        ("for=1.2.3.4, for=203.0.113.9, for=10.1.1.1", "203.0.113.9"),
        ("for=_hidden", "unknown"),
        ("by=10.0.0.1", "unknown"),
    ],
)
def test_header_forwarded_names_the_client_too(header: str, address: str) -> None:
    assert client(("forwarded", header)) == address


def test_several_headers_are_one_list() -> None:
    assert client(("x-forwarded-for", "1.2.3.4"), ("x-forwarded-for", "203.0.113.9")) == "203.0.113.9"


@pytest.mark.requirement("forwarded-address")
def test_clients_that_send_the_header_their_proxy_does_not_set_count_as_one() -> None:
    """Which of the two headers the proxy has set is unknown."""
    spoofed = {client(("x-forwarded-for", "203.0.113.9"), ("forwarded", f"for=1.2.3.{n}")) for n in range(9)}
    assert spoofed == {f"behind {PEER}"}
    assert client(("x-forwarded-for", "203.0.113.9"), ("forwarded", "for=203.0.113.9")) == "203.0.113.9"


def test_request_without_a_header_names_no_client() -> None:
    assert client(("host", "x"), ("x-forwarded-proto", "https")) is None


@pytest.mark.parametrize(
    ("host", "group"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unknown", "unknown"),
    ],
)
def test_ipv6_addresses_of_a_customer_are_one_group(host: str, group: str) -> None:
    assert address_group(host) == group


def test_proxy_is_known_by_its_ipv6_notation_too() -> None:
    assert "::ffff:10.0.0.1" in PROXIES
    assert "2001:db8:1:5::1" in PROXIES
    assert "203.0.113.9" not in PROXIES
    assert "nonsense" not in PROXIES


async def applied(peer: tuple[str, int] | None, type_: str = "http", **headers: str) -> dict[str, Any]:
    """The scope that the application gets."""
    seen: list[dict[str, Any]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope)

    given = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": type_, "client": peer, "headers": given, "scheme": "http" if type_ == "http" else "ws"}
    await ForwardedMiddleware(app, PROXIES)(scope, None, None)  # pyright: ignore[reportArgumentType]
    return seen[0]


async def test_client_and_scheme_of_a_trusted_proxy_are_used() -> None:
    scope = await applied((PEER, 1), x_forwarded_for="203.0.113.9", x_forwarded_proto="https")
    assert (scope["client"], scope["scheme"]) == (("203.0.113.9", 0), "https")
    scope = await applied((PEER, 1), "websocket", x_forwarded_proto="https")
    assert (scope["client"], scope["scheme"]) == ((PEER, 1), "wss")


async def test_headers_of_others_are_not_used() -> None:
    scope = await applied(("203.0.113.9", 1), x_forwarded_for="127.0.0.1", x_forwarded_proto="https")
    assert (scope["client"], scope["scheme"]) == (("203.0.113.9", 1), "http")


@pytest.mark.parametrize("value", ["*", "proxy.example", "10.0.0.1/8", "300.0.0.1"])
def test_value_that_is_not_a_network_is_refused(value: str) -> None:
    settings = load_settings(environ={"FORWARDED_ALLOW_IPS": f"127.0.0.1, {value}"})
    with pytest.raises(SetupError, match=r"FORWARDED_ALLOW_IPS.*neither an address nor a network"):
        TrustedProxies.from_settings(settings)


def test_proxies_of_the_environment_are_separated_by_commas() -> None:
    settings = load_settings(environ={"FORWARDED_ALLOW_IPS": "127.0.0.1, 10.0.0.0/8,"})
    assert settings.server.trusted_proxies == ["127.0.0.1", "10.0.0.0/8"]
