"""Serves the files of the page that `make page` has built, or a document that says how to build them.

The files are kept in memory, so the path of a request is never used as a path on disk. They are loaded again when the
build has changed.
"""

import hashlib
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import limelight
from limelight.errors import NotFound
from limelight.server.docs_page import STYLE

FOLDER = Path(limelight.__file__).parent / "page"
INDEX = "index.html"
FIXED_NAMES = ("icon.svg", "theme.js")
"""Files beside the index whose names do not change."""
ASSETS = "assets/"
"""The folder of files with a checksum in their names, which never change."""
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
    """Whether a path is a file of the page, which needs no key. "" is the path of a mount without its slash."""
    return path in ("", "/") or path.removeprefix("/") in FIXED_NAMES or path.startswith(f"/{ASSETS}")


class File(NamedTuple):
    """One file, and its compressed form if the build has one."""

    name: str
    body: bytes
    gzipped: bytes | None

    @property
    def media_type(self) -> str:
        return MEDIA_TYPES.get(Path(self.name).suffix, "application/octet-stream")

    @property
    def cache_control(self) -> str:
        return "public, max-age=31536000, immutable" if self.name.startswith(ASSETS) else "no-cache"


class Page:
    """The files of one build of the page."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or FOLDER
        self._mtimes: list[int] = []
        self._files: dict[str, File] = {}

    def routes(self) -> list[Route]:
        async def index(request: Request) -> Response:
            return file_response(request, self.file(INDEX) or File(INDEX, UNBUILT.encode(), None))

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
        """The file of this name; None if there is none, or if the page is not built."""
        try:
            mtimes = [(self._folder / name).stat().st_mtime_ns for name in (INDEX, ASSETS)]
        except OSError:
            return None
        if mtimes != self._mtimes:
            self._files, self._mtimes = read_files(self._folder), mtimes
        return self._files.get(name)


def read_files(folder: Path) -> dict[str, File]:
    """All files by their paths below the folder, each with its compressed form."""
    bodies = {path.relative_to(folder).as_posix(): path.read_bytes() for path in _files_in(folder)}
    return {
        name: File(name, body, bodies.get(f"{name}.gz")) for name, body in bodies.items() if not name.endswith(".gz")
    }


def _files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]


def file_response(request: Request, file: File) -> Response:
    """The file, compressed if the browser accepts that, or 304 if the browser has it."""
    gzipped = file.gzipped if accepts_gzip(request.headers.get("accept-encoding", "")) else None
    body = file.body if gzipped is None else gzipped
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
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
