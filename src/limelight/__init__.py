"""Limelight puts an agent's work in the light: one durable log of typed events, streamed live to any client.

`limelight.Client`, `limelight.SyncClient` and `limelight.events` are loaded when they are first named: importing this
package alone pulls in no agent framework, no web server and no HTTP.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from limelight import events as events
    from limelight.client import Client as Client
    from limelight.client import SyncClient as SyncClient

__version__ = "0.1.0"

_LAZY = {"Client": "limelight.client", "SyncClient": "limelight.client"}


def __getattr__(name: str) -> Any:
    if name == "events":
        return import_module("limelight.events")
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'limelight' has no attribute {name!r}")
