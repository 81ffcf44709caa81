"""Memory: which state of its own an agent goes on with.

Frameworks keep a conversation under a key. The session's memory says which key that is and which turns are in it. A
request that comes with the conversation as the memory has it goes on with it; one that comes with another past (an
edited message, another client) gets a fresh key, and the agent is given that past. What no turn will use again is
forgotten, by the source first and by the store then, so that a crash in between loses nothing but time.
"""

import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from limelight.ids import sortable_id
from limelight.messages import Message, files_of
from limelight.models import Memory, MemoryTurn, SessionRef
from limelight.runs.agents import Agent, Agents
from limelight.runs.history import history_from_log
from limelight.runs.retry import retry_while_unavailable
from limelight.stores.base import Store

log = logging.getLogger(__name__)


class Recalled(msgspec.Struct, frozen=True):
    """What a turn starts from."""

    key: str
    history: Callable[[], Awaitable[Sequence[Message]]]
    told: Sequence[Message] = ()
    """The past that a fresh memory begins with, as the client tells it: the session's log does not have it."""


class Memories:
    """The memories of all sessions."""

    def __init__(self, store: Store, agents: Agents, idle_seconds: float) -> None:
        self._store = store
        self._agents = agents
        self._idle_seconds = idle_seconds
        self._used: dict[str, tuple[Agent, float]] = {}
        self._busy: dict[str, str] = {}
        """The keys of runs that go on, by run."""

    async def recall(
        self, agent: Agent, ref: SessionRef, run_id: str, messages: Sequence[Message], continues_session: bool
    ) -> Recalled:
        """The memory for this turn. With `continues_session`, a request with one message continues the session."""
        known = await retry_while_unavailable(lambda: self._store.memory(ref, agent.name))
        past = before_question(messages)
        asked = fingerprint(question_of(messages))
        earlier = [fingerprint(message) for message in past if message.role == "user"]
        if known is not None and continues(known, earlier, past, continues_session):
            told: Sequence[Message] = ()
            memory = Memory(key=known.key, agent=agent.name, turns=(*known.turns, MemoryTurn(asked, run_id)))
        else:
            told = past
            turns = (*(MemoryTurn(hashed, "") for hashed in earlier), MemoryTurn(asked, run_id))
            memory = Memory(key=sortable_id("mem_"), agent=agent.name, turns=turns)
        await retry_while_unavailable(lambda: self._store.remember(ref, memory))
        self._used[memory.key] = (agent, time.monotonic())
        self._busy[run_id] = memory.key

        async def history() -> Sequence[Message]:
            if past:
                return past
            return await history_from_log(self._store, [turn.run_id for turn in memory.turns[:-1]])

        return Recalled(memory.key, history, told)

    def done(self, run_id: str) -> None:
        """The run is over: from now on its memory is idle."""
        key = self._busy.pop(run_id, None)
        if key in self._used:
            self._used[key] = (self._used[key][0], time.monotonic())

    async def tidy(self) -> None:
        """Forget what is stale, and let go of what is idle. What agents keep that are not served now has to wait."""
        served = [agent.name for agent in self._agents]
        while stale := await self._store.stale_memories(served):
            for memory in stale:
                await self._forget(memory)
        now = time.monotonic()
        for key, (agent, used) in list(self._used.items()):
            if now - used > self._idle_seconds and key not in self._busy.values():
                del self._used[key]
                await agent.source.rest(key)

    async def _forget(self, memory: Memory) -> None:
        self._used.pop(memory.key, None)
        try:
            await self._agents.get(memory.agent).source.forget(memory.key)
        except Exception as error:  # a framework's database: what is left there is of no use to anybody
            log.warning("agent %s could not forget %s: %r", memory.agent, memory.key, error)
        await self._store.drop_memory(memory.key)


def continues(known: Memory, earlier: Sequence[str], past: Sequence[Message], continues_session: bool) -> bool:
    """Whether a request fits a memory. The user's messages decide: what clients send back of the answers varies."""
    if not past:
        return continues_session
    return [turn.asked for turn in known.turns] == list(earlier)


def question_of(messages: Sequence[Message]) -> Message:
    """The newest message of the user."""
    return next(message for message in reversed(messages) if message.role == "user")


def before_question(messages: Sequence[Message]) -> list[Message]:
    """The conversation before the newest message of the user, without instructions."""
    last = max(at for at, message in enumerate(messages) if message.role == "user")
    return [message for message in messages[:last] if message.role != "system"]


def fingerprint(message: Message) -> str:
    """The same for messages that say the same, in whatever form."""
    digest = hashlib.sha256(message.text.strip().encode("utf-8", "replace"))
    for file in files_of(message):
        digest.update(b"\0" + (file.data if file.data is not None else file.url.encode("utf-8", "replace")))
    return digest.hexdigest()[:32]
