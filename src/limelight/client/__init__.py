"""The client library: start, follow, cancel and approve runs, read sessions; with asyncio or without.

`limelight.Client` and `limelight.SyncClient` are defined here. The package imports no server, engine or store, only the
events.
"""

from limelight.client.client import Client
from limelight.client.errors import (
    AlreadyDecided,
    Busy,
    ClientError,
    ConnectionLost,
    Expired,
    FieldError,
    Limited,
    NotFound,
    NotOffered,
    ServerError,
    Unauthorized,
)
from limelight.client.models import (
    AgentInfo,
    Answer,
    ApprovalInfo,
    Fault,
    Gap,
    Me,
    Message,
    RunInfo,
    SessionInfo,
    State,
    ToolCall,
    ToolResult,
)
from limelight.client.run import Run
from limelight.client.session_socket import Socket
from limelight.client.sync_client import SyncClient, SyncRun, SyncSocket

__all__ = [
    "AgentInfo",
    "AlreadyDecided",
    "Answer",
    "ApprovalInfo",
    "Busy",
    "Client",
    "ClientError",
    "ConnectionLost",
    "Expired",
    "Fault",
    "FieldError",
    "Gap",
    "Limited",
    "Me",
    "Message",
    "NotFound",
    "NotOffered",
    "Run",
    "RunInfo",
    "ServerError",
    "SessionInfo",
    "Socket",
    "State",
    "SyncClient",
    "SyncRun",
    "SyncSocket",
    "ToolCall",
    "ToolResult",
    "Unauthorized",
]
