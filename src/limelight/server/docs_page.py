"""The page at /docs: every route with its parameters, errors and a call to copy. It loads nothing and runs nothing."""

import html
import json
from collections.abc import Iterable
from typing import Any

import msgspec

from limelight import __version__
from limelight.errors import LimelightError
from limelight.server.endpoint import Endpoint

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2433; --soft: #5b6577; --line: #dfe3ea; --back: #fbfbfc; --code: #f1f3f6;
  --lime: #4d7c0f; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #9aa4b5; --line: #2c3442; --back: #12161d;
  --code: #1b212b; --lime: #a3e635; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 56rem; margin: 0 auto; padding: 3rem 1.5rem 5rem; }
h1 { margin: 0; font-size: 1.9rem; letter-spacing: -0.02em; }
h2 { margin: 3rem 0 0.5rem; font-size: 1.15rem; }
p { margin: 0.4rem 0; color: var(--soft); }
a { color: var(--lime); }
details { border: 1px solid var(--line); border-radius: 8px; margin: 0.5rem 0; background: var(--back); }
details[open] { padding-bottom: 0.9rem; }
details > :not(summary) { margin-left: 1rem; margin-right: 1rem; }
summary { cursor: pointer; padding: 0.6rem 1rem; display: flex; gap: 0.8rem; align-items: baseline; flex-wrap: wrap; }
summary span { color: var(--soft); margin-left: auto; }
summary b { color: var(--lime); font: 600 0.8rem/1 ui-monospace, monospace; min-width: 3.6rem; }
code, pre { font-family: ui-monospace, "SF Mono", Menlo, monospace; font-size: 0.88rem; }
pre { background: var(--code); padding: 0.8rem 1rem; border-radius: 6px; overflow-x: auto; }
table { border-collapse: collapse; margin-top: 0.6rem; }
td { padding: 0.25rem 1.2rem 0.25rem 0; vertical-align: top; border: 0; }
td + td { color: var(--soft); }
"""


def docs_page(endpoints: Iterable[Endpoint]) -> str:
    """The page as HTML."""
    listed = list(endpoints)
    tags = list(dict.fromkeys(endpoint.tag for endpoint in listed))
    sections = "".join(
        f"<h2>{tag}</h2>" + "".join(_entry(endpoint) for endpoint in listed if endpoint.tag == tag) for tag in tags
    )
    errors = "".join(
        f'<tr id="error-{error.code}"><td><code>{error.code}</code></td><td>{error.status}</td>'
        f"<td>{html.escape(error.title)}</td></tr>"
        for error in sorted(all_errors(), key=lambda e: (e.status, e.code))
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Limelight: HTTP interface</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>
<body><main>
<h1>Limelight</h1>
<p>The HTTP interface of version {__version__}. For machines: <a href="openapi.json">openapi.json</a>.
Where an API key is set, send it as <code>Authorization: Bearer …</code> with every call but the probes.</p>
{sections}
<h2>Errors</h2>
<p>Every error is <code>application/problem+json</code> with one of these codes;
inside a stream it is an event with the same code.</p>
<table>{errors}</table>
</main></body></html>
"""


def all_errors() -> list[type[LimelightError]]:
    """Every error that a client can meet, each code once."""
    found: dict[str, type[LimelightError]] = {}
    pending: list[type[LimelightError]] = [LimelightError]
    while pending:
        error = pending.pop(0)
        pending += error.__subclasses__()
        if error.__module__ == LimelightError.__module__:
            found.setdefault(error.code, error)
    return list(found.values())


def _entry(endpoint: Endpoint) -> str:
    rows = "".join(
        f"<tr><td><code>?{param.name}=</code></td><td>{html.escape(param.description)}</td></tr>"
        for param in endpoint.query
    )
    errors = ", ".join(
        f'<a href="#error-{error.code}"><code>{error.code}</code></a> {error.status}' for error in endpoint.errors
    )
    return (
        f"<details><summary><b>{endpoint.method}</b><code>{endpoint.path}</code><span>{endpoint.summary}</span></summary>"
        f"<p>{html.escape(endpoint.description)}</p>"
        + (f"<table>{rows}</table>" if rows else "")
        + f"<pre>{html.escape(_example(endpoint))}</pre>"
        + (f"<p>Errors: {errors}</p>" if errors else "")
        + "</details>"
    )


def _example(endpoint: Endpoint) -> str:
    method = "" if endpoint.method == "GET" else f" -X {endpoint.method}"
    stream = " -N" if endpoint.reply == "text/event-stream" else ""
    lines = [f"curl{stream}{method} http://127.0.0.1:8000{endpoint.path}"]
    if endpoint.body is not None:
        body = json.dumps(_sample(endpoint.body))
        lines += ["  -H 'Content-Type: application/json'", f"  -d '{body}'"]
    return " \\\n".join(lines)


def _sample(shape: type) -> dict[str, Any]:
    """The smallest body that shows how it works."""
    samples: dict[str, Any] = {
        "messages": [{"role": "user", "content": "What is in my files?"}],
        "title": "Notes on bees",
        "decision": "approve",
    }
    required = [field.name for field in msgspec.structs.fields(shape) if field.required]
    return {name: samples[name] for name in required}
