"""Terms: what a request says beside its question. The log does not tell it, and no viewer is to see it.

It is kept with the run, so that another process can go on with it on the same terms. Sessions write it down for agents
whose runs survive their server; reopening reads it.
"""

import msgspec

from limelight.messages import Message
from limelight.runs.truncation import result_key
from limelight.stores.base import Result, Run, Store

KEY = result_key("terms")


class Terms(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """On what a run goes on."""

    system: tuple[str, ...] = ()
    """The texts of the client's system messages."""
    max_steps: int | None = None
    user_name: str = ""

    def beside(self, question: Message) -> list[Message]:
        """What the agent gets: the instructions, then the question."""
        return [*(Message(role="system", content=text) for text in self.system), question]


def to_keep(terms: Terms) -> list[Result]:
    """What is stored with the run; nothing if nothing was said."""
    if terms == Terms():
        return []
    return [Result(key=KEY, media_type="application/json", body=msgspec.json.encode(terms))]


async def kept_terms(store: Store, run: Run) -> Terms:
    kept = await store.result(run.run_id, KEY)
    return Terms() if kept is None else msgspec.json.decode(kept.body, type=Terms)
