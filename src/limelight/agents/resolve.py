"""Resolves targets and settings to the agents that a server offers.

Targets of the command line come first, then the `[agents]` tables, then the catalogue of built-in agents. A table
without a target adjusts the built-in agent of its name, and the other built-in agents stay on offer. As soon as one
table has a target outside of the catalogue, only the tables are offered. Creating a source is cheap: frameworks are
imported when it is opened.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from limelight.agents.load import load_agent
from limelight.agents.validate import Mistake, option_mistakes, status_mistakes, table_mistakes
from limelight.builtin.agent_config import EXECUTE, IMPORTS, AgentConfig
from limelight.builtin.catalogue import BUILT_INS, BuiltIn, built_in, make_source
from limelight.builtin.model_choice import ModelChoice, choose_model, is_address
from limelight.builtin.search_tools import SearchTools
from limelight.config import AgentSettings, Settings
from limelight.config.validation import AGENT_NAME_RULE, is_agent_name, suggestion
from limelight.errors import SetupError
from limelight.runs.agent_registry import Agent
from limelight.sandbox.levels import Choice, check_choice, choose_level
from limelight.sandbox.policy import Limits
from limelight.sandbox.sandbox import Sandbox
from limelight.sources.base import Options


class ResolvedAgents(msgspec.Struct, frozen=True):
    """The agents on offer, and the built-in agents that are left out because their extras are not installed."""

    agents: list[Agent]
    left_out: list[BuiltIn]
    warnings: list[str] = []
    """Lines about settings that probably have no effect."""

    @property
    def hint(self) -> str:
        """Lines for the user: the built-in agents that are left out, with the reason, and the warnings; "" if none."""
        return "\n".join([*self._left_out_lines(), *self.warnings])

    def without_unconfined(self, choice: Choice) -> "ResolvedAgents":
        """Leave out agents that run a model's code unconfined, for a server that other machines can reach.

        If `choice`, the configured sandbox level, is `none`, all agents stay on offer. Raises SetupError if no agent is
        left.
        """
        unconfined = [agent for agent in self.agents if agent.sandbox is not None and agent.sandbox.level == "none"]
        if choice == "none" or not unconfined:
            return self
        names = ", ".join(agent.name for agent in unconfined)
        line = (
            f"Left out, as code of a model would run unconfined on a server that others can reach: {names}  "
            f"({choose_level(choice).reason}; LIMELIGHT_SANDBOX=none serves them anyway)"
        )
        confined = [agent for agent in self.agents if agent not in unconfined]
        if not confined:
            raise SetupError(line)
        return ResolvedAgents(confined, self.left_out, [*self.warnings, line])

    def _left_out_lines(self) -> list[str]:
        if not self.left_out:
            return []
        names = ", ".join(agent.name for agent in self.left_out)
        extras = ",".join(dict.fromkeys(agent.extra for agent in self.left_out))
        return [f"Left out, as their extras are not installed: {names}  (pip install 'limelight[{extras}]')"]


def resolve_agents(
    settings: Settings,
    targets: Sequence[str] = (),
    *,
    only: str | None = None,
    environ: Mapping[str, str] = os.environ,
) -> ResolvedAgents:
    """Return the agents that targets and settings offer. Raises SetupError with a line for each mistake.

    `only` is the name of the single agent to load, or "" for the default agent. None loads all agents.
    """
    resolver = _Resolver(settings, environ)
    candidates = [resolver.from_target(target) for target in targets] if targets else resolver.from_settings()
    available = [candidate for candidate in candidates if not candidate.is_left_out]
    if only is not None:
        return ResolvedAgents([_find(candidates if only else available, only).load()], [])
    left_out = [c.built_in for c in candidates if c.is_left_out and c.built_in is not None]
    warnings = [line for candidate in available for line in resolver.warnings(candidate)]
    return ResolvedAgents(_load_all(available), left_out, warnings)


class _Candidate(msgspec.Struct, frozen=True):
    """An agent that may be offered. `load` checks its settings and creates it."""

    name: str
    load: Callable[[], Agent]
    built_in: BuiltIn | None = None
    is_requested: bool = True
    """Whether a target or a table names the agent."""

    @property
    def is_left_out(self) -> bool:
        """Whether the agent is left out, as a built-in agent that was not requested and whose extra is missing."""
        return self.built_in is not None and not self.is_requested and not self.built_in.is_installed


def _load_all(candidates: Sequence[_Candidate]) -> list[Agent]:
    """Load the agents of all candidates. Raises one SetupError with the mistakes of all of them."""
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


def _find(candidates: Sequence[_Candidate], name: str) -> _Candidate:
    for candidate in candidates:
        if candidate.name == name or not name:
            return candidate
    names = [candidate.name for candidate in candidates]
    hint = suggestion(name, names, f"; there are: {', '.join(names)}")
    raise SetupError(f"there is no agent {name!r}{hint}")


class _Resolver:
    """Finds the candidates that targets and settings name, and creates their agents."""

    def __init__(self, settings: Settings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ

    def from_target(self, target: str) -> _Candidate:
        """Return the candidate for a command-line argument: the name of a table or built-in agent, or a target."""
        if target in self._settings.agents:
            return self._from_table(target)
        found = built_in(target)
        if found is not None:
            return self._from_catalogue(target, found, AgentSettings())
        return _Candidate(target.rpartition(":")[2], lambda: _load_target(target))

    def from_settings(self) -> list[_Candidate]:
        """Return the candidates of the `[agents]` tables and of the catalogue.

        If a table defines an agent of the user, only the tables count, and the catalogue is left out.
        """
        tables = self._settings.agents
        if any(self._built_in_of(name) is None for name in tables):
            return [self._from_table(name) for name in tables]
        additional = [self._from_table(name) for name in tables if built_in(name) is None]
        return [*map(self._default, BUILT_INS), *additional]

    def warnings(self, candidate: _Candidate) -> list[str]:
        """Return a warning line for each setting in a candidate's table that probably has no effect."""
        table = self._settings.agents.get(candidate.name)
        if table is None or candidate.built_in is None:
            return []
        return self._lines(candidate.name, status_mistakes(table, candidate.built_in))

    def _built_in_of(self, name: str) -> BuiltIn | None:
        """Return the built-in agent that a table adjusts; None if the table defines the user's own agent."""
        return built_in(self._settings.agents[name].target or name)

    def _default(self, agent: BuiltIn) -> _Candidate:
        if agent.name in self._settings.agents:
            return self._from_table(agent.name)
        candidate = self._from_catalogue(agent.name, agent, AgentSettings())
        return msgspec.structs.replace(candidate, is_requested=False)

    def _from_table(self, name: str) -> _Candidate:
        table, found = self._settings.agents[name], self._built_in_of(name)
        if found is not None:
            return self._from_catalogue(name, found, table)
        return _Candidate(name, lambda: self._load_own(name, table))

    def _from_catalogue(self, name: str, agent: BuiltIn, table: AgentSettings) -> _Candidate:
        return _Candidate(name, lambda: self._create_built_in(name, agent, table), agent)

    def _load_own(self, name: str, table: AgentSettings) -> Agent:
        """Load the user's own agent from the target of its table."""
        if not table.target:
            needed = f"needs a target, e.g. target = 'my_module:agent'{_built_in_hint(name)}"
            raise self._error(name, [Mistake("", needed)])
        mistakes = list(table_mistakes(table, None))
        try:
            sandbox = self._sandbox() if table.sandbox else None
            agent = load_agent(table.target, name=name, options=_options(table, sandbox))
        except SetupError as error:
            wrong_target = Mistake("target", _with_built_in_hint(table.target, error.detail))
            raise self._error(name, [wrong_target, *mistakes]) from error
        self._check(name, [*mistakes, *option_mistakes(table, agent.source.OPTIONS, agent.source.framework)])
        return _apply_table(msgspec.structs.replace(agent, sandbox=sandbox), table)

    def _create_built_in(self, name: str, agent: BuiltIn, table: AgentSettings) -> Agent:
        options = option_mistakes(table, agent.source_type.OPTIONS | agent.settings, agent.source_type.framework)
        self._check(name, [*table_mistakes(table, agent), *options])
        has_model = "model" in agent.settings
        model = self._model(name, table) if has_model else ModelChoice()
        sandbox = self._sandbox() if agent.runs_code or table.execute else None
        config = AgentConfig(
            model=model,
            search_tools=self._search_tools(),
            sample_files=not table.workspace,
            planning_interval=table.planning_interval,
            approve=_approved_tools(agent, table),
            execute=table.execute,
            imports=IMPORTS if table.imports is None else tuple(table.imports),
            sandbox=sandbox,
        )
        created = Agent(
            name=name,
            source=make_source(agent, name, config, _options(table, sandbox)),
            title=agent.title if name == agent.name else name,
            description=agent.description,
            model=model.model if has_model else "",
            sandbox=sandbox,
        )
        return _apply_table(created, table)

    def _model(self, name: str, table: AgentSettings) -> ModelChoice:
        try:
            return choose_model(table.model, table.base_url, self._environ)
        except SetupError as error:
            key = "model" if table.model else "base_url" if table.base_url else ""
            raise self._error(name, [Mistake(key, error.detail)]) if key else error from error

    def _search_tools(self) -> SearchTools:
        tools = self._settings.tools
        if tools.search_url and (wrong := _search_url_error(tools.search_url)):
            raise SetupError(f"{self._settings.origin.place('tools', 'search_url')}tools.search_url {wrong}")
        return SearchTools(search_url=tools.search_url, web=tools.web, private_addresses=tools.private_addresses)

    def _sandbox(self) -> Sandbox:
        """Return the sandbox of the settings. Raises SetupError if this machine does not support the sandbox level."""
        settings = self._settings.sandbox
        limits = Limits(
            memory_mb=settings.memory_mb,
            cpu_seconds=settings.cpu_seconds,
            processes=settings.processes,
            file_mb=settings.file_mb,
        )
        try:
            check_choice(settings.level)
        except SetupError as error:
            raise SetupError(f"{self._settings.origin.place('sandbox', 'level')}{error.detail}") from error
        secret = (self._settings.store.data, self._settings.origin.file)
        return Sandbox(
            choice=settings.level,
            network=settings.network,
            limits=limits,
            read_only=tuple(str(Path(path).expanduser().absolute()) for path in settings.read_only),
            hidden=tuple(str(Path(path).absolute()) for path in secret if path),
        )

    def _check(self, name: str, mistakes: Sequence[Mistake]) -> None:
        if mistakes:
            raise self._error(name, mistakes)

    def _error(self, name: str, mistakes: Iterable[Mistake]) -> SetupError:
        return SetupError("\n".join(self._lines(name, mistakes)))

    def _lines(self, name: str, mistakes: Iterable[Mistake]) -> list[str]:
        """Return an error line for each mistake in an agent's table. Each line begins with the place in the file."""
        place = self._settings.origin.place
        return [
            f"{place('agents', name, *filter(None, key.split('.', 1)))}[agents.{name}] {message}"
            for key, message in mistakes
        ]


def _load_target(target: str) -> Agent:
    """Load an agent from a target of the command line. The agent is named after its variable."""
    try:
        agent = load_agent(target)
    except SetupError as error:
        raise SetupError(_with_built_in_hint(target, error.detail)) from error
    if not is_agent_name(agent.name):
        raise SetupError(f"target {target!r}: {agent.name!r} cannot be the name of an agent: {AGENT_NAME_RULE}")
    return agent


def _with_built_in_hint(target: str, message: str) -> str:
    """Append the names of built-in agents to the error about a target, if the target looks like such a name."""
    return message if ":" in target or target.endswith(".py") else f"{message}{_built_in_hint(target)}"


def _built_in_hint(word: str) -> str:
    names = [agent.name for agent in BUILT_INS]
    return suggestion(word, names, f", or the name of a built-in agent: {', '.join(names)}")


def _search_url_error(url: str) -> str:
    if "{query}" not in url:
        return "has no {query} in it, so nothing could be searched for"
    return "" if is_address(url) else "is not a valid address: it has to begin with http:// or https://"


def _approved_tools(agent: BuiltIn, table: AgentSettings) -> tuple[str, ...]:
    """Return the names of the tools that need approval: the table's `approve`, or else the defaults of the agent.

    The defaults include `execute` if the table enables that tool.
    """
    if table.approve is not None:
        return tuple(dict.fromkeys(table.approve))
    return (*agent.approve, EXECUTE) if table.execute else agent.approve


def _options(table: AgentSettings, sandbox: Sandbox | None) -> Options:
    return Options(
        sandbox=sandbox,
        max_steps=table.max_steps,
        planning_interval=table.planning_interval,
        approve=tuple(dict.fromkeys(table.approve or ())),
    )


def _apply_table(agent: Agent, table: AgentSettings) -> Agent:
    """Return a copy of the agent with the settings of its table applied."""
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
