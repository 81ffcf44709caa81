"""A server whose agents request approvals."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from limelight.events import AnyEvent, ToolFinished, ToolStarted
from limelight.sources.base import Context
from tests.client.server_thread import serve_in_thread
from tests.support import agents


async def twice(messages: object, ctx: Context) -> AsyncIterator[str | AnyEvent]:
    """Requests two approvals at once."""
    yield ToolStarted(call_id="m", name="send_mail", args={"to": "ann", "text": "one\ntwo\n" + "long " * 50})
    mail = ctx.approve("send_mail", {"to": "ann", "text": "one\ntwo\n" + "long " * 50}, call_id="m")
    publish = ctx.approve("publish", {"page": 1}, decisions=("approve", "reject"))
    first, second = await asyncio.gather(mail, publish)
    yield ToolFinished(call_id="m", result="ok")
    yield f"mail: {first.decision} to {first.args['to']}, publish: {second.decision}, {second.reason}"


@pytest.fixture
def approval_server(tmp_path: Path) -> Iterator[str]:
    """The URL of a server; `asker` is the default agent."""
    with serve_in_thread(agents.asker, twice, data=tmp_path / "data") as served:
        yield served.url
