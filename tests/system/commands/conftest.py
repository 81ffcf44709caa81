"""The server with agents that request approvals, for commands in processes."""

from tests.cli.conftest import approval_server

__all__ = ["approval_server"]
