"""Which agents are served: those that are named on the command line, or in the configuration, or the built-in ones.

`server/app.py` and the command line ask here; `choosing` reads the configuration.
"""

import os
from collections.abc import Mapping, Sequence

import msgspec

from limelight.agents.candidates import Candidate, Choosing
from limelight.builtin.catalogue import BuiltIn
from limelight.config import Settings
from limelight.config.suggestions import meant
from limelight.errors import SetupError
from limelight.runs.agents import Agent


class Offer(msgspec.Struct, frozen=True):
    """What is served, and the built-in agents that are not, as their extras are missing."""

    agents: list[Agent]
    left_out: list[BuiltIn]
    warnings: list[str] = []
    """What in the configuration will probably make no difference, a line each."""

    @property
    def hint(self) -> str:
        """Lines about those that were left out, and about what makes no difference; empty if all is well."""
        return "\n".join([*self._missed(), *self.warnings])

    def _missed(self) -> list[str]:
        if not self.left_out:
            return []
        names = ", ".join(one.name for one in self.left_out)
        extras = ",".join(dict.fromkeys(one.extra for one in self.left_out))
        return [f"Left out, as their extras are not installed: {names}  (pip install 'limelight[{extras}]')"]


def offered(
    settings: Settings,
    targets: Sequence[str] = (),
    *,
    only: str | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Offer:
    """The agents to serve. `only` takes one of them, the default if it is empty, and loads no other."""
    choosing = Choosing(settings, environ)
    candidates = [choosing.named(target) for target in targets] if targets else list(choosing.configured())
    there = [candidate for candidate in candidates if not candidate.is_missed]
    if only is not None:
        return Offer([_only(candidates if only else there, only).load()], [])
    left_out = [candidate.one for candidate in candidates if candidate.is_missed and candidate.one is not None]
    return Offer(_loaded(there), left_out, [line for candidate in there for line in choosing.warnings(candidate)])


def _loaded(candidates: Sequence[Candidate]) -> list[Agent]:
    """All of them, or all that is wrong with them: who corrects one mistake wants to know of the next."""
    agents: list[Agent] = []
    mistakes: list[str] = []
    for candidate in candidates:
        try:
            agents.append(candidate.load())
        except SetupError as error:
            mistakes += error.detail.splitlines()
    if mistakes:
        raise SetupError("\n".join(dict.fromkeys(mistakes)))
    return agents


def _only(candidates: Sequence[Candidate], name: str) -> Candidate:
    for candidate in candidates:
        if candidate.name == name or not name:
            return candidate
    names = [one.name for one in candidates]
    close = meant(name, names)
    hint = f"did you mean {close!r}?" if close else f"there are: {', '.join(names)}"
    raise SetupError(f"there is no agent {name!r}; {hint}")
