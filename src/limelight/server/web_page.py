"""Serves the web page that `make page` has built; without a build, a document that explains how to build it.

All files are loaded into memory, so that the path of a request is never used as a path on disk. They are loaded again
after a new build.
"""

import hashlib
from pathlib import Path
from typing import NamedTuple, Self

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import limelight
from limelight.errors import NotFound
from limelight.server.api_docs_page import STYLE

FOLDER = Path(limelight.__file__).parent / "page"
INDEX = "index.html"
FIXED_NAMES = ("icon.svg", "theme.js")
"""Files of the page, besides the index, whose names contain no checksum."""
ASSETS = "assets/"
"""Folder of the files with a checksum in their names, which browsers may cache for ever."""
MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".ttf": "font/ttf",
    ".txt": "text/plain; charset=utf-8",
    ".wasm": "application/wasm",
    ".woff": "font/woff",
    ".woff2": "font/woff2",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
UNBUILT = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Limelight</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>
<body><main>
<h1>Limelight</h1>
<p>The server works. Its page is not built here: run <code>make page</code> where Limelight's sources are, then
load this again. That needs Node 20.19 or newer; where there is none, one is fetched.</p>
<p>All routes, each with a call to copy, are at <a href="docs">docs</a>.</p>
</main></body></html>
"""


def is_page_file(path: str) -> bool:
    """Whether a request path names a file of the page, for which no key is needed.

    "" is the index of the page if the application is mounted into another one.
    """
    return path in ("", "/") or path.removeprefix("/") in FIXED_NAMES or path.startswith(f"/{ASSETS}")


class Content(NamedTuple):
    """The bytes of a file with their entity tag, which is computed once, so that a flood of requests hashes nothing."""

    body: bytes
    etag: str

    @classmethod
    def of(cls, body: bytes) -> Self:
        return cls(body, f'"{hashlib.sha256(body).hexdigest()[:32]}"')


class File(NamedTuple):
    """A file of the page, with its gzip form if the build has one."""

    name: str
    plain: Content
    gzipped: Content | None

    @property
    def media_type(self) -> str:
        return MEDIA_TYPES.get(Path(self.name).suffix, "application/octet-stream")

    @property
    def cache_control(self) -> str:
        return "public, max-age=31536000, immutable" if self.name.startswith(ASSETS) else "no-cache"


UNBUILT_INDEX = File(INDEX, Content.of(UNBUILT.encode()), None)


class Page:
    """The files of the page in the folder of the build, and the routes that serve them."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or FOLDER
        self._mtimes: list[int] = []
        self._files: dict[str, File] = {}

    def routes(self) -> list[Route]:
        async def index(request: Request) -> Response:
            return file_response(request, self.file(INDEX) or UNBUILT_INDEX)

        async def fixed_name(request: Request) -> Response:
            return file_response(request, self._required_file(request.url.path.rpartition("/")[2]))

        async def asset(request: Request) -> Response:
            return file_response(request, self._required_file(ASSETS + request.path_params["name"]))

        fixed_names = [Route(f"/{name}", fixed_name) for name in FIXED_NAMES]
        return [Route("/", index), *fixed_names, Route(f"/{ASSETS}{{name:path}}", asset)]

    def _required_file(self, name: str) -> File:
        file = self.file(name)
        if file is None:
            raise NotFound(f"the page has no file {name[:100]!r}")
        return file

    def file(self, name: str) -> File | None:
        """Return the file of the page with a name; None if it does not exist or the page is not built."""
        try:
            mtimes = [(self._folder / name).stat().st_mtime_ns for name in (INDEX, ASSETS)]
        except OSError:
            return None
        if mtimes != self._mtimes:
            self._files, self._mtimes = read_files(self._folder), mtimes
        return self._files.get(name)


def read_files(folder: Path) -> dict[str, File]:
    """Return the files of a folder, by their relative paths. A file `x.gz` becomes the gzip form of `x`."""
    contents = {path.relative_to(folder).as_posix(): Content.of(path.read_bytes()) for path in _files_in(folder)}
    return {
        name: File(name, content, contents.get(f"{name}.gz"))
        for name, content in contents.items()
        if not name.endswith(".gz")
    }


def _files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]


def file_response(request: Request, file: File) -> Response:
    """Return the response with a file: compressed if the browser accepts gzip, or 304 if the browser has cached it."""
    gzipped = file.gzipped if accepts_gzip(request.headers.get("accept-encoding", "")) else None
    body, etag = gzipped or file.plain
    headers = {
        "Content-Security-Policy": POLICY,
        "Cache-Control": file.cache_control,
        "ETag": etag,
        "Vary": "Accept-Encoding",
    }
    if etag in [known.strip().removeprefix("W/") for known in request.headers.get("if-none-match", "").split(",")]:
        return Response(status_code=304, headers=headers)
    if gzipped is not None:
        headers["Content-Encoding"] = "gzip"
    headers["Content-Length"] = str(len(body))
    return Response(b"" if request.method == "HEAD" else body, media_type=file.media_type, headers=headers)


def accepts_gzip(accept_encoding: str) -> bool:
    for coding in accept_encoding.lower().split(","):
        name, _, quality = coding.partition(";")
        if name.strip() in ("gzip", "*"):
            return quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
