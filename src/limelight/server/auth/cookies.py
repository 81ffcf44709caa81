"""The cookie with the API key of the page. Scripts cannot read it, and other sites cannot use it.

The name of the cookie contains the port, because browsers share cookies between all ports of a host. It also contains
the root path, because a browser sends the cookie of a server at `/` to servers at longer paths too.
"""

import re

from starlette.requests import Request
from starlette.responses import Response

from limelight.server.middleware.root_path import root_of

MAX_AGE_SECONDS = 30 * 24 * 3600
MAX_COOKIE_BYTES = 16 * 1024
"""Size of the header `Cookie` above which it is ignored. It contains the cookies of all servers of the host."""
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_INVALID_IN_NAMES = re.compile(r"[^A-Za-z0-9._~-]")
"""Characters of a root path that the name of the cookie cannot contain. They are replaced."""
_OWN_SITES = (b"same-origin", b"none")


def cookie_name(headers: dict[bytes, bytes], root: str = "") -> str:
    """Return the name of this server's cookie, from the port in the `Host` header and the root path."""
    port = headers.get(b"host", b"").decode("latin-1").rpartition("]")[2].partition(":")[2]
    parts = ["limelight_key", port if port.isdecimal() else "", _INVALID_IN_NAMES.sub(".", root.strip("/"))]
    return "_".join(filter(None, parts))


def key_from_cookie(headers: dict[bytes, bytes], root: str = "") -> str | None:
    """Return the API key from the cookie of this server; None if the request has no such cookie.

    Keys contain no character that needs quotes. Python's parser of cookies also decodes quoted values, some of them in
    quadratic time: a header of 60 KB would keep the server busy for seconds.
    """
    header = headers.get(b"cookie", b"")
    if len(header) > MAX_COOKIE_BYTES:
        return None
    name = cookie_name(headers, root)
    for cookie in header.decode("latin-1").split(";"):
        found, _, value = cookie.partition("=")
        if found.strip() == name:
            return value.strip() or None
    return None


def is_same_site(method: str, headers: dict[bytes, bytes], origins: tuple[str, ...] = ()) -> bool:
    """Whether a request with a cookie comes from this server's page, or from an allowed origin of the settings.

    Browsers send `Sec-Fetch-Site`, which is reliable even if a proxy changes `Host`. With unsafe methods and sockets
    they also send `Origin`. An unsafe request with neither header does not come from a browser, and is refused.
    """
    site = headers.get(b"sec-fetch-site")
    if site is not None and site in _OWN_SITES:
        return True
    origin = headers.get(b"origin")
    if origin is not None:
        host = headers.get(b"host", b"").lower()
        return origin.lower().partition(b"://")[2] == host or origin.decode("latin-1") in origins
    return site is None and method in _SAFE_METHODS


def is_cross_site(method: str, headers: dict[bytes, bytes], origins: tuple[str, ...] = ()) -> bool:
    """Whether a request must be refused because a page of another site sends it: an unsafe request or a socket.

    A client that sends neither `Origin` nor `Sec-Fetch-Site` is not a browser. Safe requests are allowed: browsers do
    not let other sites read the responses.
    """
    is_browser = b"origin" in headers or b"sec-fetch-site" in headers
    return is_browser and method not in _SAFE_METHODS and not is_same_site(method, headers, origins)


def set_key_cookie(request: Request, response: Response, key: str) -> None:
    """Add to a response the cookie with an API key, for the root path of this server. "" deletes the cookie."""
    root, secure = root_of(request.scope), request.url.scheme == "https"
    name = cookie_name(dict(request.headers.raw), root)
    if key:
        response.set_cookie(
            name, key, MAX_AGE_SECONDS, path=f"{root}/", secure=secure, httponly=True, samesite="strict"
        )
    else:
        response.delete_cookie(name, path=f"{root}/", secure=secure, httponly=True, samesite="strict")
