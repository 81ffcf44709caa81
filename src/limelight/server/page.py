"""The page: gives out the files that `make page` has built, or says how to build them. It knows nothing of sessions.

The files are held in memory, so no path of a request ever reaches the disk. A new build is noticed by itself.
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
BESIDE = ("icon.svg", "theme.js")
"""Files beside it that keep their names."""
HASHED = "assets/"
"""Files in here have a checksum in their names: another content has another name."""
TYPES = {
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


def is_of_the_page(path: str) -> bool:
    """Whether a path is for everybody: the page's files hold no secret. "" is a mount without its slash."""
    return path in ("", "/") or path.removeprefix("/") in BESIDE or path.startswith(f"/{HASHED}")


class File(NamedTuple):
    """One file, as it is and compressed, if the build has done that."""

    name: str
    body: bytes
    gzipped: bytes | None

    @property
    def media_type(self) -> str:
        return TYPES.get(Path(self.name).suffix, "application/octet-stream")

    @property
    def caching(self) -> str:
        return "public, max-age=31536000, immutable" if self.name.startswith(HASHED) else "no-cache"


class Page:
    """The files of one folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or FOLDER
        self._stamp: list[int] = []
        self._files: dict[str, File] = {}

    def routes(self) -> list[Route]:
        async def index(request: Request) -> Response:
            return respond(request, self.file(INDEX) or File(INDEX, UNBUILT.encode(), None))

        async def beside(request: Request) -> Response:
            return respond(request, self._known(request.url.path.rpartition("/")[2]))

        async def asset(request: Request) -> Response:
            return respond(request, self._known(HASHED + request.path_params["name"]))

        others = [Route(f"/{name}", beside) for name in BESIDE]
        return [Route("/", index), *others, Route(f"/{HASHED}{{name:path}}", asset)]

    def _known(self, name: str) -> File:
        file = self.file(name)
        if file is None:
            raise NotFound(f"the page has no file {name[:100]!r}")
        return file

    def file(self, name: str) -> File | None:
        """The file of this name; None if there is none, or no page at all."""
        try:
            stamp = [(self._folder / name).stat().st_mtime_ns for name in (INDEX, HASHED)]
        except OSError:
            return None
        if stamp != self._stamp:
            self._files, self._stamp = read_files(self._folder), stamp
        return self._files.get(name)


def read_files(folder: Path) -> dict[str, File]:
    """All files by their names below the folder, each with its compressed twin."""
    bodies = {path.relative_to(folder).as_posix(): path.read_bytes() for path in _files_in(folder)}
    return {
        name: File(name, body, bodies.get(f"{name}.gz")) for name, body in bodies.items() if not name.endswith(".gz")
    }


def _files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]


def respond(request: Request, file: File) -> Response:
    """The file, compressed if the browser takes that; nothing but its tag if the browser has it."""
    zipped = file.gzipped is not None and takes_gzip(request.headers.get("accept-encoding", ""))
    body = file.gzipped if zipped and file.gzipped is not None else file.body
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {
        "Content-Security-Policy": POLICY,
        "Cache-Control": file.caching,
        "ETag": tag,
        "Vary": "Accept-Encoding",
    }
    if tag in [known.strip().removeprefix("W/") for known in request.headers.get("if-none-match", "").split(",")]:
        return Response(status_code=304, headers=headers)
    if zipped:
        headers["Content-Encoding"] = "gzip"
    headers["Content-Length"] = str(len(body))
    return Response(b"" if request.method == "HEAD" else body, media_type=file.media_type, headers=headers)


def takes_gzip(accepted: str) -> bool:
    """Whether `Accept-Encoding` allows it."""
    for coding in accepted.lower().split(","):
        name, _, quality = coding.partition(";")
        if name.strip() in ("gzip", "*"):
            return quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
