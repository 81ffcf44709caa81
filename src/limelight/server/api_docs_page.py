"""The HTML document at /docs: every route with its parameters, response, errors and a curl command."""

import html
import json
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from limelight import __version__
from limelight.errors import LimelightError, RunError, SetupError, StoreError, all_errors
from limelight.server.endpoint import Endpoint
from limelight.server.v2 import asyncapi

STYLE = """
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
summary { cursor: pointer; padding: 0.6rem 1rem; display: flex; gap: 0.8rem; align-items: baseline; flex-wrap: wrap;
  border-radius: 8px; }
summary:hover, summary:focus-visible { background: var(--code); }
summary span { color: var(--soft); margin-left: auto; }
summary b { color: var(--lime); font: 600 0.8rem/1 ui-monospace, monospace; min-width: 3.6rem; }
code, pre { font-family: ui-monospace, "SF Mono", Menlo, monospace; font-size: 0.88rem; }
pre { background: var(--code); padding: 0.8rem 1rem; border-radius: 6px; overflow-x: auto; line-height: 1.45; }
h3 { margin: 1.1rem 0 0; font-size: 0.8rem; font-weight: 600; color: var(--soft); }
h3 + pre { margin-top: 0.4rem; }
table { border-collapse: collapse; margin-top: 0.4rem; }
td { padding: 0.25rem 1.2rem 0.25rem 0; vertical-align: top; border: 0; }
td:first-child { white-space: nowrap; }
td + td { color: var(--soft); }
tr:target td:first-child { box-shadow: inset 0 -2px var(--lime); }
"""

_ERROR_GROUPS = (
    ("Errors of a request", "The body is <code>application/problem+json</code> with one of these codes."),
    (
        "Errors of a run",
        "They end a run: the stream has an error with this code, and <code>POST /chat</code> answers 502.",
    ),
    (
        "Errors of the server",
        "The log cannot be used, the server accepts no more work, or an unexpected error occurred.",
    ),
)
"""Titles and introductions of the error tables. `_error_group` returns an index into them."""
EXAMPLE_ADDRESS = "://127.0.0.1:8000"
"""The address of the server in the curl commands."""


def docs_page(endpoints: Iterable[Endpoint], root: str = "") -> str:
    """Return the API documentation as an HTML document. `root` is the root path of the server."""
    return _document(endpoints).replace(EXAMPLE_ADDRESS, EXAMPLE_ADDRESS + html.escape(root))


def _document(endpoints: Iterable[Endpoint]) -> str:
    listed = list(endpoints)
    tags = list(dict.fromkeys(endpoint.tag for endpoint in listed))
    sections = "".join(
        f"<h2>{tag}</h2>"
        + "".join(_entry(endpoint) for endpoint in listed if endpoint.tag == tag)
        + (_socket() if tag == asyncapi.TAG else "")
        for tag in tags
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Limelight: HTTP interface</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>
<body><main>
<h1>Limelight</h1>
<p>The HTTP interface of version {__version__}. For people there is
<a href="./">the page</a>. For machines: <a href="openapi.json">openapi.json</a>, and
<a href="api/v2/asyncapi.json">asyncapi.json</a> for the socket.
Where an API key is set, send it as <code>Authorization: Bearer …</code> with every call but the probes and the page.
Times are milliseconds since 1970, in Web API v2 ISO 8601.</p>
{sections}
{_errors()}
</main></body></html>
"""


def _errors() -> str:
    """Return HTML tables of all error codes that clients can get. Errors at the start of a server are left out."""
    groups: list[list[str]] = [[] for _ in _ERROR_GROUPS]
    for error in sorted(all_errors(), key=lambda e: (e.status, e.code)):
        if not issubclass(error, SetupError):
            groups[_error_group(error)].append(
                f'<tr id="error-{error.code}"><td><code>{error.code}</code></td><td>{error.status}</td>'
                f"<td>{_text(error.title)}</td></tr>"
            )
    return "".join(
        f"<h2>{title}</h2><p>{about}</p><table>{''.join(rows)}</table>"
        for (title, about), rows in zip(_ERROR_GROUPS, groups, strict=True)
    )


def _error_group(error: type[LimelightError]) -> int:
    if issubclass(error, RunError):
        return 1
    return 2 if issubclass(error, StoreError) or error.status >= 500 else 0


def _entry(endpoint: Endpoint) -> str:
    return (
        f"<details><summary><b>{endpoint.method}</b><code>{endpoint.documented_path}</code><span>{endpoint.summary}</span></summary>"
        f"<p>{_text(endpoint.description)}</p>"
        + _table("Query", [(f"?{param.name}=", _text(param.description)) for param in endpoint.query])
        + (_table("Body", _fields(endpoint.body)) if endpoint.body is not None else "")
        + f"<h3>Call</h3><pre>{html.escape(_example(endpoint))}</pre>"
        + f"<h3>Answer {endpoint.status}</h3>{_response(endpoint)}"
        + _table("Errors", [_error_row(e) for e in endpoint.all_errors])
        + "</details>"
    )


def _socket() -> str:
    examples = "\n".join(json.dumps(example) for command in asyncapi.COMMANDS for example in command.examples)
    return (
        f"<details><summary><b>WS</b><code>{asyncapi.PATH}</code><span>{asyncapi.SUMMARY}</span></summary>"
        f"<p>{_text(asyncapi.DESCRIPTION)}</p>"
        + _table("Query", [(f"?{param.name}=", _text(param.description)) for param in asyncapi.QUERY])
        + f"<h3>Call</h3><pre>{html.escape(asyncapi.CALL)}</pre>"
        + _table("Client messages", [(c.name, _text(asyncapi.summary(c.schema))) for c in asyncapi.COMMANDS])
        + f"<h3>Examples</h3><pre>{html.escape(examples, quote=False)}</pre>"
        + _table(
            "Server messages", [(asyncapi.name_of(s), _text(asyncapi.summary(s))) for s in asyncapi.SERVER_MESSAGES]
        )
        + "</details>"
    )


def _table(title: str, rows: list[tuple[str, str]]) -> str:
    if not rows:
        return ""
    lines = "".join(f"<tr><td><code>{name}</code></td><td>{about}</td></tr>" for name, about in rows)
    return f"<h3>{title}</h3><table>{lines}</table>"


def _error_row(error: type[LimelightError]) -> tuple[str, str]:
    if error is RunError:
        return "502", "The run failed; the code is the run's own"
    return f'<a href="#error-{error.code}">{error.code}</a>', f"{error.status} · {_text(error.title)}"


def _text(text: str) -> str:
    """Return a text as HTML, with words in backticks as `<code>`."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))


def _example(endpoint: Endpoint) -> str:
    method = "" if endpoint.method == "GET" else f" -X {endpoint.method}"
    stream = " -N" if endpoint.response == "text/event-stream" else ""
    path = re.sub(r"{(\w+)}", lambda name: name[1].upper(), endpoint.documented_path)  # curl would expand the braces
    lines = [f"curl{stream}{method} http://127.0.0.1:8000{path}"]
    if endpoint.body is not None:
        body = json.dumps(_sample(endpoint.body))
        lines += ["  -H 'Content-Type: application/json'", f"  -d '{body}'"]
    return " \\\n".join(lines)


def _sample(schema: type) -> dict[str, Any]:
    """Return an example of a request body for a curl command. It has only the required fields."""
    samples: dict[str, Any] = {
        "messages": [{"role": "user", "content": "What is in my files?"}],
        "title": "Notes on bees",
        "decision": "approve",
        "key": "lml_…",
    }
    required = [field.name for field in msgspec.structs.fields(schema) if field.required]
    return {name: samples[name] for name in required}


def _response(endpoint: Endpoint) -> str:
    if isinstance(endpoint.response, str):
        return f"<p><code>{endpoint.response}</code></p>"
    if endpoint.response is None:
        return "<p>No body.</p>"
    schema, components = _schema(endpoint.response)
    lines = json.dumps(_outline(schema, components), indent=2, ensure_ascii=False)
    return f"<pre>{html.escape(lines, quote=False)}</pre>"


def _fields(body: type) -> list[tuple[str, str]]:
    schema, components = _schema(body)
    schema = components[schema["$ref"]]
    required = schema.get("required", [])
    rows: list[tuple[str, str]] = []
    for name, field in schema["properties"].items():
        about = json.dumps(_outline(field, components), ensure_ascii=False).strip('"').replace('\\"', '"')
        rows.append((name, html.escape(about, quote=False) + (" · required" if name in required else "")))
    return rows


def _schema(struct: type) -> tuple[dict[str, Any], dict[str, Any]]:
    (schema,), components = msgspec.json.schema_components([struct], ref_template="{name}")
    return schema, components


def _outline(schema: dict[str, Any], components: dict[str, Any]) -> Any:
    """Return the shape of the JSON that a schema describes: its objects and lists, with names of types as values."""
    if "$ref" in schema:
        return _outline(components[schema["$ref"]], components)
    if "properties" in schema:
        return {name: _outline(field, components) for name, field in schema["properties"].items()}
    if schema.get("type") == "array":
        return [_outline(schema.get("items") or {}, components)]
    if "anyOf" in schema:
        struct = next((choice for choice in schema["anyOf"] if "$ref" in choice), None)
        if struct is not None:  # the other choice is null
            return _outline(struct, components)
        names = [choice.get("type", "any") for choice in schema["anyOf"]]
        return "any" if len(names) > 4 else " | ".join(names)
    if "enum" in schema:
        return " | ".join(schema["enum"])
    return schema.get("type", "any")
