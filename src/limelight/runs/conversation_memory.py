"""Conversation memories: chooses which conversation in the storage of its framework an agent continues.

An agent framework stores each conversation under a key. For each agent and session, a *memory* in the store holds this
key and the turns of the conversation. A request with the same earlier messages continues the conversation. A request
with other earlier messages (an edited message, another client) begins a conversation with a new key, and the agent gets
those messages. A memory that no turn will use again is deleted first by the source and then in the store, so that a
crash in between only delays the deletion.
"""

import asyncio
import hashlib
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from limelight.ids import sortable_id
from limelight.messages import Message, files_of
from limelight.models import Memory, MemoryTurn, SessionRef
from limelight.runs.agent_registry import Agent, Agents
from limelight.runs.conversation_history import chat_from_log, history_from_log
from limelight.runs.error_message import error_message
from limelight.runs.limits import MemoryLimits
from limelight.runs.store_retry import retry_while_unavailable
from limelight.stores.base import Store

log = logging.getLogger(__name__)


class Recalled(msgspec.Struct, frozen=True):
    """The conversation memory that an agent has at the start of a turn.

    `key` is the key of the conversation in the framework's storage. `history` returns the messages before the turn, for
    a framework that has stored no conversation under this key.
    """

    key: str
    history: Callable[[], Awaitable[Sequence[Message]]]
    missing_messages: Callable[[], Awaitable[Sequence[Message]]]
    """A function that returns the earlier questions and answers, if the request continues them without sending them."""
    past: Sequence[Message] = ()
    """The earlier messages that the client has sent, if the memory is new. The log does not contain them."""
    replaces: bool = False
    """Whether this is a new memory that replaces an earlier one of the session."""


class Loaded(msgspec.Struct, frozen=True):
    """A memory whose source may hold data in this process."""

    agent: Agent
    owner: str
    used_at: float
    held_bytes: int = 0
    """The data that the source holds while the memory is idle; 0 during a run."""


class Memories:
    """The conversation memories of all sessions: which stored conversation of its framework each agent continues."""

    def __init__(self, store: Store, agents: Agents, idle_seconds: float, limits: MemoryLimits | None = None) -> None:
        self._store = store
        self._agents = agents
        self._idle_seconds = idle_seconds
        self._limits = limits or MemoryLimits()
        self._used: dict[str, Loaded] = {}
        """The memories by key, the least recently used first, until the source has freed the data in this process."""
        self._busy: dict[str, str] = {}
        """The memory keys that live runs use, by run id."""
        self._tidying = asyncio.Lock()

    async def recall(
        self, agent: Agent, ref: SessionRef, run_id: str, messages: Sequence[Message], continues_session: bool
    ) -> Recalled:
        """Choose the memory for a turn, add the turn to it in the store, and return it.

        `continues_session`: whether a request without earlier messages continues the newest memory of the session.
        """
        known = await retry_while_unavailable(lambda: self._store.memory(ref, agent.name))
        past = before_question(messages)
        question = fingerprint(question_of(messages))
        earlier = [fingerprint(message) for message in past if message.role == "user"]
        replaces = known is not None and not continues(known, earlier, past, continues_session)
        if known is not None and not replaces:
            given: Sequence[Message] = ()
            memory = Memory(key=known.key, agent=agent.name, turns=(*known.turns, MemoryTurn(question, run_id)))
        else:
            given = past
            turns = (*(MemoryTurn(hashed, "") for hashed in earlier), MemoryTurn(question, run_id))
            memory = Memory(key=sortable_id("mem_"), agent=agent.name, turns=turns)
        await retry_while_unavailable(lambda: self._store.remember(ref, memory))
        self._used.pop(memory.key, None)
        self._used[memory.key] = Loaded(agent, ref.owner, time.monotonic())
        self._busy[run_id] = memory.key

        earlier_runs = [turn.run_id for turn in memory.turns[:-1]]

        async def history() -> Sequence[Message]:
            if past:
                return past
            return await history_from_log(self._store, earlier_runs)

        async def missing_messages() -> Sequence[Message]:
            return () if past else await chat_from_log(self._store, earlier_runs)

        return Recalled(memory.key, history, missing_messages, given, replaces)

    def done(self, run_id: str) -> None:
        """Mark the memory of an ended run as idle, so that its data in this process can be freed."""
        key = self._busy.pop(run_id, "")
        if (loaded := self._used.pop(key, None)) is not None:
            held = loaded.agent.source.held_bytes(key)
            self._used[key] = msgspec.structs.replace(loaded, used_at=time.monotonic(), held_bytes=held)

    async def free_excess(self) -> None:
        """Free data of idle memories in this process until it is within the limits.

        A conversation that alone exceeds the limits goes first, then those of the user that were least recently used.
        """
        while (key := self._excess()) is not None:
            await self._unload(key)

    def _excess(self) -> str | None:
        """Return the key of the memory to free next; None if the limits are not exceeded."""
        busy = set(self._busy.values())
        idle = {key: one for key, one in self._used.items() if one.held_bytes and key not in busy}
        held: Counter[str] = Counter()
        for one in idle.values():
            held[one.owner] += one.held_bytes
        owner = self._limits.exceeded_by(held)
        own = [key for key, one in idle.items() if one.owner == owner]
        too_large = (key for key in own if self._limits.exceeded_alone(idle[key].owner, idle[key].held_bytes))
        return next(too_large, next(iter(own), None))

    async def _unload(self, key: str) -> None:
        agent = self._used.pop(key).agent
        try:
            await agent.source.unload(key)
        except Exception as error:  # an error of the agent's executor; its conversation is not used any more
            log.warning("agent %s could not unload its conversation %s: %s", agent.name, key, error_message(error))

    async def tidy(self) -> None:
        """Delete stale memories of the agents that are served now, and free the RAM of memories that are idle.

        The conversation of an idle memory stays in the framework's storage and can be continued.
        """
        async with self._tidying:  # otherwise two tasks would make a source forget the same memory
            await self._forget_stale()
        now = time.monotonic()
        for key, loaded in list(self._used.items()):
            if now - loaded.used_at > self._idle_seconds and key in self._used and key not in self._busy.values():
                await self._unload(key)

    async def _forget_stale(self) -> None:
        served = [agent.name for agent in self._agents]
        while stale := await self._store.stale_memories(served):
            sessions: set[tuple[SessionRef, str]] = set()
            for memory in stale:
                await self._forget(memory, sessions)

    async def _forget(self, memory: Memory, sessions: set[tuple[SessionRef, str]]) -> None:
        """Delete a stale memory. `sessions` are the deleted sessions that the source has already forgotten."""
        self._used.pop(memory.key, None)
        source = self._agents.get(memory.agent).source
        try:
            await source.forget(memory.key)
            if memory.ref is not None and (memory.ref, memory.agent) not in sessions:
                sessions.add((memory.ref, memory.agent))
                if await self._store.memory(memory.ref, memory.agent) is None:  # the session was deleted
                    await source.forget_session(*memory.ref)
        except Exception as error:  # an error of the framework's database; its data is not used any more
            log.warning(
                "agent %s could not delete its conversation %s: %s", memory.agent, memory.key, error_message(error)
            )
        await self._store.drop_memory(memory.key)


def continues(known: Memory, earlier: Sequence[str], past: Sequence[Message], continues_session: bool) -> bool:
    """Whether a request continues the conversation of a memory, because it has the same earlier messages of the user.

    Answers are not compared, because clients change them. For a request without earlier messages, the result is
    `continues_session`.
    """
    if not past:
        return continues_session
    return [turn.asked for turn in known.turns] == list(earlier)


def question_of(messages: Sequence[Message]) -> Message:
    """Return the newest message of the user."""
    return next(message for message in reversed(messages) if message.role == "user")


def before_question(messages: Sequence[Message]) -> list[Message]:
    """Return the messages before the user's newest message, without system messages."""
    last = max(at for at, message in enumerate(messages) if message.role == "user")
    return [message for message in messages[:last] if message.role != "system"]


def fingerprint(message: Message) -> str:
    """Return a hash of the text and the files of a message, to recognize a message that a client sends again."""
    digest = hashlib.sha256(message.text.strip().encode("utf-8", "replace"))
    for file in files_of(message):
        digest.update(b"\0" + (file.data if file.data is not None else file.url.encode("utf-8", "replace")))
    return digest.hexdigest()[:32]
