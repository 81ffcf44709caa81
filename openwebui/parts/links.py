"""Where a link of the server leads to: the paths that it tells have the path in front below which it is."""

from urllib.parse import urlsplit


def located(url: str, path: str) -> str:
    """The address of a path at a server whose own address may have a path: `https://host/limelight`, which the server
    puts in front of its links if it knows of it, and only once belongs into the whole."""
    root = urlsplit(url).path.rstrip("/")
    return url + (path.removeprefix(root) if path.startswith(f"{root}/") else path)
