"""Reads the configuration with the catalogue of built-in agents beside it: who could be served, and as what.

Tables of built-in agents adjust them and leave the others where they are; as soon as one table has a target of its own,
the tables are all that is served. What `refusing` finds wrong is told with its place. Making the source of an agent is
cheap: frameworks are loaded when it is opened. `offering` decides who is.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from limelight.agents.load import load_agent
from limelight.agents.validate import Mistake, option_mistakes, status_in_vain, table_mistakes
from limelight.builtin.agent_config import EXECUTE, IMPORTS, AgentConfig
from limelight.builtin.catalogue import BUILT_INS, BuiltIn, built_in, make_source
from limelight.builtin.model_choice import ModelChoice, choose_model, is_address
from limelight.builtin.search_tools import SearchTools
from limelight.config import AgentSettings, Settings
from limelight.config.suggestions import NAME_RULE, is_name, meant
from limelight.errors import SetupError
from limelight.runs.agents import Agent
from limelight.sources.base import Options


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
        return Candidate(name, lambda: self._own(name, table))

    def _unasked(self, one: BuiltIn) -> Candidate:
        return msgspec.structs.replace(self._built_in(one.name, one, AgentSettings()), asked=False)

    def _built_in(self, name: str, one: BuiltIn, table: AgentSettings) -> Candidate:
        return Candidate(name, lambda: self._made(name, one, table), one)

    def _own(self, name: str, table: AgentSettings) -> Agent:
        if not table.target:
            raise self._wrong(name, [("", f"needs a target, e.g. target = 'my_module:agent'{_built_ins_near(name)}")])
        mistakes = list(table_mistakes(table, None))
        try:
            agent = load_agent(table.target, name=name, options=_options(table))
        except SetupError as error:
            raise self._wrong(name, [("target", _with_hint(table.target, error.detail)), *mistakes]) from error
        self._refuse(name, [*mistakes, *option_mistakes(table, agent.source.OPTIONS, agent.source.framework)])
        return _adjusted(agent, table)

    def _made(self, name: str, one: BuiltIn, table: AgentSettings) -> Agent:
        options = option_mistakes(table, one.source_type.OPTIONS | one.settings, one.source_type.framework)
        self._refuse(name, [*table_mistakes(table, one), *options])
        has_model = "model" in one.settings
        model = self._model(name, table) if has_model else ModelChoice()
        config = AgentConfig(
            model=model,
            search_tools=self._search_tools(),
            sample_files=not table.workspace,
            planning_interval=table.planning_interval,
            approve=_asking(one, table),
            execute=table.execute,
            imports=IMPORTS if table.imports is None else tuple(table.imports),
        )
        source = make_source(one, name, config, _options(table))
        title = one.title if name == one.name else name
        played_by = model.model if has_model else ""
        agent = Agent(name=name, source=source, title=title, description=one.description, model=played_by)
        return _adjusted(agent, table)

    def _model(self, name: str, table: AgentSettings) -> ModelChoice:
        try:
            return choose_model(table.model, table.base_url, self._environ)
        except SetupError as error:
            key = "model" if table.model else "base_url" if table.base_url else ""
            raise self._wrong(name, [(key, error.detail)]) if key else error from error

    def _search_tools(self) -> SearchTools:
        tools, place = self._settings.tools, self._settings.origin.place("tools", "search_url")
        if tools.search_url and "{query}" not in tools.search_url:
            raise SetupError(f"{place}tools.search_url has no {{query}} in it, so nothing could be searched for")
        if tools.search_url and not is_address(tools.search_url):
            raise SetupError(f"{place}tools.search_url is no address: it has to begin with http:// or https://")
        return SearchTools(search_url=tools.search_url, web=tools.web, private_addresses=tools.private_addresses)

    def warnings(self, candidate: Candidate) -> list[str]:
        """What in its table will make no difference, perhaps."""
        table = self._settings.agents.get(candidate.name)
        if table is None or candidate.one is None:
            return []
        return self._told(candidate.name, status_in_vain(table, candidate.one))

    def _refuse(self, name: str, mistakes: Iterable[Mistake]) -> None:
        found = list(mistakes)
        if found:
            raise self._wrong(name, found)

    def _wrong(self, name: str, mistakes: Iterable[Mistake]) -> SetupError:
        return SetupError("\n".join(self._told(name, mistakes)))

    def _told(self, name: str, mistakes: Iterable[Mistake]) -> list[str]:
        """Each with its place in the file."""
        place = self._settings.origin.place
        return [
            f"{place('agents', name, *filter(None, key.split('.', 1)))}[agents.{name}] {told}" for key, told in mistakes
        ]


def _loaded(target: str) -> Agent:
    """An agent from the command line, which has the name of its variable."""
    try:
        agent = load_agent(target)
    except SetupError as error:
        raise SetupError(_with_hint(target, error.detail)) from error
    if not is_name(agent.name):
        raise SetupError(f"target {target!r}: {agent.name!r} cannot be the name of an agent: {NAME_RULE}")
    return agent


def _with_hint(target: str, told: str) -> str:
    """Who writes one word may have meant a built-in agent."""
    return told if ":" in target or target.endswith(".py") else f"{told}{_built_ins_near(target)}"


def _built_ins_near(word: str) -> str:
    names = [one.name for one in BUILT_INS]
    close = meant(word, names)
    return f"; did you mean {close!r}?" if close else f", or the name of a built-in agent: {', '.join(names)}"


def _asking(one: BuiltIn, table: AgentSettings) -> tuple[str, ...]:
    """The tools before which a person is asked. Commands are among them unless a list says otherwise."""
    if table.approve is not None:
        return tuple(dict.fromkeys(table.approve))
    return (*one.approve, EXECUTE) if table.execute else one.approve


def _options(table: AgentSettings) -> Options:
    return Options(
        max_steps=table.max_steps,
        planning_interval=table.planning_interval,
        approve=tuple(dict.fromkeys(table.approve or ())),
    )


def _adjusted(agent: Agent, table: AgentSettings) -> Agent:
    """The agent as its table wants it."""
    return msgspec.structs.replace(
        agent,
        title=table.title or agent.title,
        description=table.description or agent.description,
        enable_streaming=table.enable_streaming,
        max_steps=table.max_steps,
        status=table.status,
        python_tools=tuple(table.python_tools),
        workspace=str(Path(table.workspace).expanduser()) if table.workspace else "",
    )
