"""Reads the configuration with the catalogue of built-in agents beside it: who could be served, and as what.

Tables of built-in agents adjust them and leave the others where they are; as soon as one table has a target of its own,
the tables are all that is served. Settings that would make no difference are refused. Making the source of an agent is
cheap: frameworks are loaded when it is opened. `offering` decides who is.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from limelight.builtin.catalogue import BUILT_INS, BuiltIn, built_in, make_source
from limelight.builtin.kit import IMPORTS, Kit
from limelight.builtin.lookup import Lookup
from limelight.builtin.model import ModelChoice, choose_model
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


class Candidate(msgspec.Struct, frozen=True):
    """An agent that could be served; nothing of it is loaded yet."""

    name: str
    load: Callable[[], Agent]
    one: BuiltIn | None = None
    asked: bool = True
    """Somebody has named it. Others are left out if their extra is missing."""

    @property
    def is_missed(self) -> bool:
        """It cannot be served, and nobody has asked for it."""
        return self.one is not None and not self.asked and not self.one.is_installed


class Choosing:
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
        return Candidate(target.rpartition(":")[2], lambda: _loaded(target))

    def configured(self) -> Iterable[Candidate]:
        tables = self._settings.agents
        if any(self._meant(name) is None for name in tables):
            return [self._of_table(name) for name in tables]
        others = [name for name in tables if built_in(name) is None]
        usual = [self._of_table(b.name) if b.name in tables else self._unasked(b) for b in BUILT_INS]
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

    def _unasked(self, one: BuiltIn) -> Candidate:
        return msgspec.structs.replace(self._built_in(one.name, one, AgentSettings()), asked=False)

    def _built_in(self, name: str, one: BuiltIn, table: AgentSettings) -> Candidate:
        return Candidate(name, lambda: self._made(name, one, table), one)

    def _own(self, name: str, table: AgentSettings) -> Agent:
        for key, reason in OWN.items():
            self._refuse_if_set(name, table, key, reason)
        options = _options(table)
        agent = load_agent(table.target, name=name, options=options)
        self._check(name, table, agent.source)
        return _adjusted(agent, table)

    def _made(self, name: str, one: BuiltIn, table: AgentSettings) -> Agent:
        for key in ("model", "base_url", "workspace", "imports"):
            if key not in one.honours:
                self._refuse_if_set(name, table, key, NOT_HONOURED[key])
        kit = Kit(
            model=self._model(name, table) if "model" in one.honours else ModelChoice(),
            lookup=self._lookup(),
            samples=not table.workspace,
            planning_interval=table.planning_interval,
            imports=IMPORTS if table.imports is None else tuple(table.imports),
        )
        source = make_source(one, name, kit, _options(table))
        self._check(name, table, source)
        title = one.title if name == one.name else name
        return _adjusted(Agent(name=name, source=source, title=title, description=one.description), table)

    def _model(self, name: str, table: AgentSettings) -> ModelChoice:
        try:
            return choose_model(table.model, table.base_url, self._environ)
        except SetupError as error:
            raise SetupError(f"{self._settings.origin.place('agents', name)}agent {name!r}: {error.detail}") from error

    def _check(self, name: str, table: AgentSettings, source: Source) -> None:
        if table.workspace and not _can_be_a_folder(Path(table.workspace).expanduser()):
            raise self._wrong(name, "workspace", f"workspace: {table.workspace} is no folder")
        for key in ("max_steps", "planning_interval"):
            if key not in source.OPTIONS:
                self._refuse_if_set(name, table, key, NOT_HONOURED[key].format(framework=source.framework))

    def _lookup(self) -> Lookup:
        tools = self._settings.tools
        if tools.search_url and "{query}" not in tools.search_url:
            place = self._settings.origin.place("tools", "search_url")
            raise SetupError(f"{place}tools.search_url has no {{query}} in it, so nothing could be searched for")
        return Lookup(search_url=tools.search_url, web=tools.web, private_addresses=tools.private_addresses)

    def _refuse_if_set(self, name: str, table: AgentSettings, key: str, reason: str) -> None:
        if getattr(table, key) != getattr(AgentSettings(), key):
            raise self._wrong(name, key, f"{key} makes no difference for this agent: {reason}")

    def _wrong(self, name: str, key: str, told: str) -> SetupError:
        place = self._settings.origin.place("agents", name, *filter(None, [key]))
        return SetupError(f"{place}[agents.{name}] {told}")


def _loaded(target: str) -> Agent:
    try:
        return load_agent(target)
    except SetupError as error:
        if ":" in target or target.endswith(".py"):
            raise
        names = ", ".join(one.name for one in BUILT_INS)
        raise SetupError(f"{error.detail}, or the name of a built-in agent: {names}") from error


def _options(table: AgentSettings) -> Options:
    return Options(max_steps=table.max_steps, planning_interval=table.planning_interval)


def _can_be_a_folder(path: Path) -> bool:
    return path.is_dir() or not path.exists()


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
