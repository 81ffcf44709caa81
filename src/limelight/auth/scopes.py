"""What a key allows. Pure."""

from typing import Literal, get_args

Scope = Literal["use", "admin", "on-behalf-of"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
ALL = frozenset(SCOPES)
MEANINGS: dict[Scope, str] = {
    "use": "run agents, and see and change what is one's own",
    "admin": "list users and their sessions, and delete these; read the metrics",
    "on-behalf-of": "name the user for whom a request is, as Open WebUI's pipe does",
}
