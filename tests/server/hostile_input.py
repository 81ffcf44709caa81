"""The target of hostile input: a user whose data contains a secret that no answer to another user may contain."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import HealthCheck, Phase, settings

from limelight.events import AnyEvent, ToolFinished, ToolOutputDelta, ToolStarted
from limelight.messages import Message
from limelight.models import SessionRef
from limelight.sources.base import Context, FileMade
from limelight.stores.base import Store
from tests.server.keyed_server import Headers, start_waiting_run
from tests.support.server import Served

SECRET = "the-quokka-is-in-the-attic"
TITLE = "the-wombat-is-on-the-roof"
"""A title, which only the owner and administrators may read."""
TRACES = ("Traceback (most recent", 'File "', ".py:", "site-packages")
AMPLE: dict[str, Any] = {
    "server__heartbeat_seconds": 0.2,
    "limits__requests_per_minute": 10**6,
    "limits__runs": 10**4,
    "limits__runs_per_user": 10**4,
    "limits__streams_per_user": 10**4,
}
"""Settings without effective limits of users."""

Names = dict[str, str]
"""The ids of a run and its parts, by their names in paths."""


async def repeater(messages: list[Message], ctx: Context) -> AsyncIterator[str | AnyEvent | FileMade]:
    """Repeats the message in a call, its output, a result, a file, an approval and the answer."""
    text = messages[-1].text
    yield ToolStarted(call_id="c", name="keep", args={"text": text})
    yield ToolOutputDelta(call_id="c", text=text)
    yield ToolFinished(call_id="c", result={"text": text})
    yield FileMade(name=f"{text[:50]}.txt", data=text.encode(), media_type="text/plain")
    await ctx.approve("send", {"text": text})
    yield text


class Victim(NamedTuple):
    """A user with two sessions: one waits for an approval, one has ended."""

    user: str
    headers: Headers
    waiting: Names
    ended: Names

    async def stored_data(self, store: Store) -> list[Any]:
        """All stored data of the victim."""
        found: list[Any] = []
        for names in (self.waiting, self.ended):
            ref = SessionRef(self.user, names["session_id"])
            found += [await store.session(ref), await store.runs(ref), await store.artifact(names["artifact_id"])]
            found += [await store.records(ref, after=0, limit=10_000)]
        return [*found, len(await store.sessions(self.user))]


async def create_victim(served: Served, user: str, headers: Headers) -> Victim:
    """Create the data of a user. The messages are large, so that the log has them truncated."""
    text = f"{SECRET} {'x' * 70_000}"
    waiting, ended = [await begin(served, headers, f"{user}-{name}", text) for name in ("waiting", "ended")]
    await decide(served, headers, ended)
    for names in (waiting, ended):
        path = f"/sessions/{names['session_id']}"
        assert (await served.http.patch(path, json={"title": TITLE}, headers=headers)).status_code == 200
        assert SECRET in (await served.http.get(f"/runs/{names['run_id']}/input", headers=headers)).text
        assert SECRET in (await served.http.get(f"/artifacts/{names['artifact_id']}", headers=headers)).text
    return Victim(user, headers, waiting, ended)


async def begin(served: Served, headers: Headers, session_id: str, text: str) -> Names:
    """Start a run that has a call, a file and an open approval."""
    return await start_waiting_run(served, headers, session_id, agent="repeater", text=text)


async def decide(served: Served, headers: Headers, names: Names) -> None:
    """Approve, and wait for the end of the run."""
    run = f"/runs/{names['run_id']}"
    answer = await served.http.post(
        f"{run}/approvals/{names['approval_id']}", json={"decision": "approve"}, headers=headers
    )
    assert answer.status_code == 200, answer.text
    async with served.http.stream("GET", f"{run}/stream", headers=headers) as response:
        await response.aread()
    assert (await served.http.get(run, headers=headers)).json()["state"] == "finished"


def generation(examples: int) -> settings:
    """Settings for `@given`, without shrinking, because each example changes the server."""
    slow = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
    return settings(max_examples=examples, database=None, phases=[Phase.generate], suppress_health_check=slow)


def leaks(text: str, data: Path) -> list[str]:
    """The parts of a text that an answer to another user must not contain."""
    return [part for part in (SECRET, TITLE, str(data), *TRACES) if part in text]


async def check_unharmed(served: Served, victim: Victim, before: list[Any]) -> None:
    """Check that the server is ready, the victim's data is unchanged, and its run can continue."""
    assert (await served.http.get("/ready")).json()["status"] == "ready"
    assert await victim.stored_data(served.runtime.store) == before
    await decide(served, victim.headers, victim.waiting)
