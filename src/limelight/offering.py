"""Which agents are served: those that are named on the command line, or in the configuration, or the built-in ones.

Tables of built-in agents adjust them and leave the others where they are; as soon as one table has a target of its own,
the tables are all that is served. Making an agent's source is cheap; the frameworks are loaded when it is opened.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from limelight.builtin.catalogue import BUILT_INS, BuiltIn, built_in, make_source
from limelight.builtin.kit import IMPORTS, Kit
from limelight.builtin.lookup import Lookup
from limelight.builtin.model import choose_model
from limelight.config import AgentSettings, Settings
from limelight.errors import SetupError
from limelight.runs.agents import Agent
from limelight.sources.base import Options, Source
from limelight.targets import load_agent

OWN = {
    "model": "that agent brings its own model",
    "base_url": "that agent brings its own model",
    "imports": "they are for codact, whose code they limit",
}
"""Why a setting of built-in agents is nothing for somebody's own."""
NOT_HONOURED = {
    "model": "it talks to no model",
    "base_url": "it talks to no model",
    "imports": "they are for codact, whose code they limit",
    "workspace": "it has no files",
    "max_steps": "its framework ({framework}) has no steps that could be counted",
    "planning_interval": "its framework ({framework}) makes no plans of its own",
}


class Offer(msgspec.Struct, frozen=True):
    """What is served, and the built-in agents that are not, as their extras are missing."""

    agents: list[Agent]
    left_out: list[BuiltIn]

    @property
    def hint(self) -> str:
        """One line about those that were left out; empty if none was."""
        if not self.left_out:
            return ""
        names = ", ".join(one.name for one in self.left_out)
        extras = ",".join(dict.fromkeys(one.extra for one in self.left_out))
        return f"Left out, as their extras are not installed: {names}  (pip install 'limelight[{extras}]')"


class Candidate(msgspec.Struct, frozen=True):
    """An agent that could be served; nothing of it is loaded yet."""

    name: str
    load: Callable[[], Agent]
    one: BuiltIn | None = None
    asked: bool = True
    """Somebody has named it. Others are left out if their extra is missing."""


def offered(
    settings: Settings,
    targets: Sequence[str] = (),
    *,
    only: str | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Offer:
    """The agents to serve. `only` takes one of them, the default if it is empty, and loads no other."""
    choosing = _Choosing(settings, environ)
    candidates = [choosing.named(target) for target in targets] if targets else list(choosing.configured())
    left_out = [c.one for c in candidates if c.one is not None and not c.asked and not c.one.is_installed]
    there = [candidate for candidate in candidates if candidate.one not in left_out]
    if only is not None:
        there = [_only(candidates if only else there, only)]
        left_out = []
    return Offer([candidate.load() for candidate in there], left_out)


def _only(candidates: Sequence[Candidate], name: str) -> Candidate:
    for candidate in candidates:
        if candidate.name == name or not name:
            return candidate
    raise SetupError(f"there is no agent {name!r}; there are: {', '.join(one.name for one in candidates)}")


class _Choosing:
    """Reads the configuration with the catalogue beside it."""

    def __init__(self, settings: Settings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ

    def named(self, target: str) -> Candidate:
        """From the command line: a table's name, a built-in agent's, or a target."""
        if target in self._settings.agents:
            return self._of_table(target)
        one = built_in(target)
        if one is not None:
            return self._built_in(target, one, AgentSettings())
        return Candidate(target.rpartition(":")[2], lambda: load_agent(target))

    def configured(self) -> Iterable[Candidate]:
        tables = self._settings.agents
        if any(self._meant(name) is None for name in tables):
            return [self._of_table(name) for name in tables]
        others = [name for name in tables if built_in(name) is None]
        usual = [self._built_in(b.name, b, tables.get(b.name, AgentSettings()), b.name in tables) for b in BUILT_INS]
        return [*usual, *map(self._of_table, others)]

    def _meant(self, name: str) -> BuiltIn | None:
        """The built-in agent that a table is about."""
        return built_in(self._settings.agents[name].target or name)

    def _of_table(self, name: str) -> Candidate:
        table, one = self._settings.agents[name], self._meant(name)
        if one is not None:
            return self._built_in(name, one, table)
        if not table.target:
            names = ", ".join(each.name for each in BUILT_INS)
            raise self._wrong(
                name, "", f"needs a target, e.g. target = 'my_module:agent', or the name of one of: {names}"
            )
        return Candidate(name, lambda: self._own(name, table))

    def _built_in(self, name: str, one: BuiltIn, table: AgentSettings, asked: bool = True) -> Candidate:
        return Candidate(name, lambda: self._made(name, one, table), one, asked)

    def _own(self, name: str, table: AgentSettings) -> Agent:
        for key, reason in OWN.items():
            self._refuse_if_set(name, table, key, reason)
        options = _options(table)
        agent = load_agent(table.target, name=name, options=options)
        self._check_options(name, table, agent.source)
        return _adjusted(agent, table)

    def _made(self, name: str, one: BuiltIn, table: AgentSettings) -> Agent:
        for key in ("model", "base_url", "workspace", "imports"):
            if key not in one.honours:
                self._refuse_if_set(name, table, key, NOT_HONOURED[key])
        try:
            model = choose_model(table.model, table.base_url, self._environ)
        except SetupError as error:
            raise SetupError(f"{self._settings.origin.place('agents', name)}agent {name!r}: {error.detail}") from error
        kit = Kit(
            model=model,
            lookup=_lookup(self._settings),
            samples=not table.workspace,
            planning_interval=table.planning_interval,
            imports=IMPORTS if table.imports is None else tuple(table.imports),
        )
        source = make_source(one, name, kit, _options(table))
        self._check_options(name, table, source)
        title = one.title if name == one.name else name
        return _adjusted(Agent(name=name, source=source, title=title, description=one.description), table)

    def _check_options(self, name: str, table: AgentSettings, source: Source) -> None:
        for key in ("max_steps", "planning_interval"):
            if key not in source.OPTIONS:
                self._refuse_if_set(name, table, key, NOT_HONOURED[key].format(framework=source.framework))

    def _refuse_if_set(self, name: str, table: AgentSettings, key: str, reason: str) -> None:
        if getattr(table, key) != getattr(AgentSettings(), key):
            raise self._wrong(name, key, f"{key} makes no difference for this agent: {reason}")

    def _wrong(self, name: str, key: str, told: str) -> SetupError:
        place = self._settings.origin.place("agents", name, *filter(None, [key]))
        return SetupError(f"{place}[agents.{name}] {told}")


def _options(table: AgentSettings) -> Options:
    return Options(max_steps=table.max_steps, planning_interval=table.planning_interval)


def _lookup(settings: Settings) -> Lookup:
    tools = settings.tools
    return Lookup(search_url=tools.search_url, web=tools.web, private_addresses=tools.private_addresses)


def _adjusted(agent: Agent, table: AgentSettings) -> Agent:
    """The agent as its table wants it."""
    return msgspec.structs.replace(
        agent,
        title=table.title or agent.title,
        description=table.description or agent.description,
        enable_streaming=table.enable_streaming,
        max_steps=table.max_steps,
        status=table.status,
        workspace=str(Path(table.workspace).expanduser()) if table.workspace else "",
    )
