"""Limelight shows the work of agents live: one durable log of typed events, streamed to any client.

`limelight.Client` and `limelight.SyncClient` are clients of a server, `limelight.events` defines the events, and
`limelight.status` and `limelight.current` are for an agent's tools. They are imported at their first use: importing
this package alone imports no agent framework, no web server and no HTTP library.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from limelight import events as events
    from limelight.client import Client as Client
    from limelight.client import SyncClient as SyncClient
    from limelight.sources.tool_api import current as current
    from limelight.sources.tool_api import status as status

__version__ = "0.1.0"

_LAZY = {
    "Client": "limelight.client",
    "SyncClient": "limelight.client",
    "current": "limelight.sources.tool_api",
    "status": "limelight.sources.tool_api",
}


def __getattr__(name: str) -> Any:
    if name == "events":
        return import_module("limelight.events")
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'limelight' has no attribute {name!r}")
