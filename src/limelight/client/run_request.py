"""How a run begins: one request, which may have to be sent again, and the stream that it opens.

The request carries an id of its own and the session's, so that the server knows it again and never begins a second run.
That a server cannot be reached at all is said at once; after a cut the request is repeated with patience. Called by
`Client.start`.
"""

import uuid
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import httpx

from limelight.client.backoff import Patience
from limelight.client.errors import ServerError
from limelight.client.models import Gap
from limelight.client.record_stream import resuming
from limelight.client.run import ends
from limelight.client.transport import Wire, part
from limelight.events import Record

Messages = str | Sequence[Mapping[str, Any]]
"""The user's words, or a whole conversation in OpenAI's shape."""
IfBusy = Literal["error", "cancel", "wait"]
RECORDS = {"format": "records"}


class Started(NamedTuple):
    """What a run is called, and its Records."""

    run_id: str
    session_id: str
    records: AsyncGenerator[Record | Gap]


class Asking(NamedTuple):
    """The body of a request for a turn."""

    messages: list[Mapping[str, Any]]
    agent: str | None
    session_id: str
    if_busy: IfBusy
    request_id: str

    def body(self) -> dict[str, Any]:
        return {name: value for name, value in self._asdict().items() if value is not None}


def asking(
    messages: Messages, agent: str | None, session_id: str | None, if_busy: IfBusy, request_id: str | None
) -> Asking:
    """Ids that are not given are made up here, because the server would make up others the second time."""
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    return Asking(
        list(messages), agent, session_id or f"ses_{uuid.uuid4().hex}", if_busy, request_id or f"req_{uuid.uuid4().hex}"
    )


async def starting(wire: Wire, asked: Asking, patience: Patience) -> Started:
    """Ask, with patience, and hand the stream over that opens."""
    response = await _ask(wire, asked, patience)
    run_id = response.headers.get("x-run-id", "")

    async def connect(after: int) -> httpx.Response | None:
        headers = {"last-event-id": str(after)}
        return await wire.open("GET", f"/runs/{part(run_id)}/stream", params=RECORDS, headers=headers)

    def over(record: Record) -> bool:
        nonlocal run_id
        run_id = record.run_id  # one that was asked for twice may have been announced under another name
        return ends(record)

    records = resuming(connect, patience, first=response, over=over)
    # From its first step on the generator holds the stream: if nobody listens, the event loop closes both.
    await anext(records)
    return Started(run_id, response.headers.get("x-session-id", asked.session_id), records)


async def _ask(wire: Wire, asked: Asking, patience: Patience) -> httpx.Response:
    was_cut = False
    while True:
        try:
            response = await wire.open("POST", "/chat/stream", params=RECORDS, body=asked.body(), headers={})
            if response is None:
                raise wire.foreign("it answered a question with 204")
            return response
        except (httpx.ConnectError, httpx.ConnectTimeout, ServerError) as error:
            if not was_cut:
                if isinstance(error, ServerError):
                    raise
                raise wire.lost(error) from error
            why: Exception = error
        except httpx.TransportError as error:
            was_cut, why = True, error
        await patience.wait(why)
