"""The client: start, follow, resume, cancel, approve, read; from asyncio or without it.

`limelight.Client` and `limelight.SyncClient` lead here. Nothing in this package may import the server, the engine or a
store: it knows what is on the wire, and the vocabulary.
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
from limelight.client.socket import Socket
from limelight.client.sync import SyncClient, SyncRun
from limelight.client.sync_socket import SyncSocket

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
