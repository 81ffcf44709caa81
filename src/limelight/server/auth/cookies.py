"""The key of the page, in a cookie that no script can read and that no other site can use.

Cookies know no ports, so the name has the port in it: two servers on one machine do not take each other's. It has the
path below which the server is as well: a browser sends the cookie of a server at the root to one below it too.
"""

import re

from starlette.requests import cookie_parser
from starlette.responses import Response

SECONDS = 30 * 24 * 3600
_SAFE = ("GET", "HEAD", "OPTIONS")
_NO_TOKEN = re.compile(r"[^A-Za-z0-9._~-]")
"""What the name of a cookie does without; a host application may be mounted anywhere."""
_OWN_SITES = (b"same-origin", b"none")


def cookie_name(headers: dict[bytes, bytes], root: str = "") -> str:
    port = headers.get(b"host", b"").decode("latin-1").rpartition("]")[2].partition(":")[2]
    parts = ["limelight_key", port if port.isdecimal() else "", _NO_TOKEN.sub(".", root.strip("/"))]
    return "_".join(filter(None, parts))


def key_in(headers: dict[bytes, bytes], root: str = "") -> str | None:
    """The key that the browser keeps for this server."""
    cookies = cookie_parser(headers.get(b"cookie", b"").decode("latin-1"))
    return cookies.get(cookie_name(headers, root)) or None


def is_own_site(method: str, headers: dict[bytes, bytes], origins: tuple[str, ...] = ()) -> bool:
    """Whether a request with a cookie comes from our own page, or from an origin that the settings name.

    Browsers say which site a request comes from; a proxy may have changed the host that we see, but not that. With what
    changes something, and with a socket, they say the origin too; a request that says neither is from no browser, and
    has no business with a cookie.
    """
    site = headers.get(b"sec-fetch-site")
    if site is not None and site in _OWN_SITES:
        return True
    origin = headers.get(b"origin")
    if origin is not None:
        host = headers.get(b"host", b"").lower()
        return origin.lower().partition(b"://")[2] == host or origin.decode("latin-1") in origins
    return site is None and method in _SAFE


def is_foreign_page(method: str, headers: dict[bytes, bytes], origins: tuple[str, ...] = ()) -> bool:
    """Whether a page of another site wants to change something, or to have a socket.

    Who says neither origin nor site is no browser. Answers to what only reads, a browser keeps from other sites itself.
    """
    says = b"origin" in headers or b"sec-fetch-site" in headers
    return says and method not in _SAFE and not is_own_site(method, headers, origins)


def keep(response: Response, name: str, key: str, *, path: str, secure: bool) -> None:
    response.set_cookie(name, key, max_age=SECONDS, path=path, secure=secure, httponly=True, samesite="strict")


def forget(response: Response, name: str, *, path: str, secure: bool) -> None:
    response.delete_cookie(name, path=path, secure=secure, httponly=True, samesite="strict")
