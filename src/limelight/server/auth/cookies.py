"""The cookie that keeps the page's key: scripts cannot read it, and other sites cannot use it.

Cookies are not separated by port, so the name contains the port: two servers on one machine do not share a cookie. It
also contains the root path: a browser sends the cookie of a server at the root to a server below it too.
"""

import re

from starlette.requests import Request, cookie_parser
from starlette.responses import Response

from limelight.server.middleware.root_path import root_of

MAX_AGE_SECONDS = 30 * 24 * 3600
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._~-]")
"""Characters that do not belong in the name of a cookie; a host application may be mounted anywhere."""
_OWN_SITES = (b"same-origin", b"none")


def cookie_name(headers: dict[bytes, bytes], root: str = "") -> str:
    port = headers.get(b"host", b"").decode("latin-1").rpartition("]")[2].partition(":")[2]
    parts = ["limelight_key", port if port.isdecimal() else "", _NOT_IN_NAMES.sub(".", root.strip("/"))]
    return "_".join(filter(None, parts))


def key_from_cookie(headers: dict[bytes, bytes], root: str = "") -> str | None:
    """The key that the browser keeps for this server."""
    cookies = cookie_parser(headers.get(b"cookie", b"").decode("latin-1"))
    return cookies.get(cookie_name(headers, root)) or None


def is_same_site(method: str, headers: dict[bytes, bytes], origins: tuple[str, ...] = ()) -> bool:
    """Whether a request with a cookie comes from this server's page, or from an origin that the settings name.

    Browsers say in `Sec-Fetch-Site` which site a request comes from; a proxy may change the host that we see, but not
    that header. With unsafe methods and with sockets they also send `Origin`. An unsafe request with neither does not
    come from a browser, and its cookie is not accepted.
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
    """Whether a page of another site sends an unsafe request or opens a socket.

    A client that sends neither `Origin` nor `Sec-Fetch-Site` is not a browser. Responses to safe requests are kept from
    other sites by the browser itself.
    """
    is_browser = b"origin" in headers or b"sec-fetch-site" in headers
    return is_browser and method not in _SAFE_METHODS and not is_same_site(method, headers, origins)


def set_key_cookie(request: Request, response: Response, key: str) -> None:
    """Set the cookie for the root path, so that other servers on the host do not get it. A key of "" deletes it."""
    root, secure = root_of(request.scope), request.url.scheme == "https"
    name = cookie_name(dict(request.headers.raw), root)
    if key:
        response.set_cookie(
            name, key, MAX_AGE_SECONDS, path=f"{root}/", secure=secure, httponly=True, samesite="strict"
        )
    else:
        response.delete_cookie(name, path=f"{root}/", secure=secure, httponly=True, samesite="strict")
