"""Determines the agents that a server offers, from command-line targets, settings and the built-in agents.

Targets of the command line come first, then the `[agents]` tables, then the catalogue of built-in agents. A table
without a target adjusts the built-in agent of its name, and the other built-in agents stay on offer. As soon as one
table has a target outside of the catalogue, only the tables are offered. Creating a source is cheap: frameworks are
imported when it is opened.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from limelight.agents.distinct_names import NamedTarget, distinct_names, path_parts
from limelight.agents.load import load_agent, load_agents, split_target
from limelight.agents.local_sources import load_sources
from limelight.agents.project import find_project
from limelight.agents.validate import Mistake, input_mistakes, option_mistakes, status_mistakes, table_mistakes
from limelight.builtin.agent_config import EXECUTE, IMPORTS, AgentConfig
from limelight.builtin.catalogue import BUILT_INS, BuiltIn, built_in, make_source
from limelight.builtin.model_choice import ModelChoice, choose_model, is_http_url
from limelight.builtin.search_tools import SearchTools
from limelight.config import AgentSettings, Settings, env_file
from limelight.config.schema import ServerSettings
from limelight.config.validation import AGENT_NAME_RULE, is_agent_name, suggestion
from limelight.errors import SetupError
from limelight.runs.agent_registry import Agent
from limelight.sandbox.levels import LevelSetting, check_choice, choose_level
from limelight.sandbox.policy import Limits
from limelight.sandbox.quota import SandboxQuota
from limelight.sandbox.sandbox import Sandbox
from limelight.sources.base import Options, Source


class ResolvedAgents(msgspec.Struct, frozen=True):
    """The agents that a server offers, and the built-in agents left out because their extras are not installed."""

    agents: list[Agent]
    left_out: list[BuiltIn]
    warnings: list[str] = []
    """Warnings about settings that probably have no effect, one line each."""

    @property
    def hint(self) -> str:
        """Lines for the user: which built-in agents are left out and why, and the warnings; "" if there are none."""
        return "\n".join([*self._left_out_lines(), *self.warnings])

    def without_unconfined(self, choice: LevelSetting) -> "ResolvedAgents":
        """Remove agents that run a model's code without a sandbox, for a server that others can use.

        If `choice`, the configured sandbox level, is `none`, all agents stay on offer. Raises SetupError if no agent is
        left.
        """
        unconfined = [agent for agent in self.agents if agent.is_unconfined]
        if choice == "none" or not unconfined:
            return self
        names = ", ".join(agent.name for agent in unconfined)
        line = (
            f"Left out, as code of a model would run unconfined on a server that others can use: {names}  "
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
    environ: Mapping[str, str] | None = None,
) -> ResolvedAgents:
    """Return the agents that a server offers. Raises SetupError with one line for each mistake.

    `only` is the name of the single agent to load, or "" for the default agent. None loads all agents. `environ` is the
    environment of built-in agents, by default without the variables of environment files.
    """
    resolver = _Resolver(settings, env_file.environ_without_files() if environ is None else environ)
    candidates = resolver.candidates(targets)
    chosen = _chosen(candidates, only)
    notices = resolver.apply_environment(chosen)
    if only is not None:
        return ResolvedAgents([_load_one(chosen, only)], [], notices)
    left_out = [c.built_in for c in candidates if c.is_left_out and c.built_in is not None]
    warnings = [line for candidate in chosen for line in resolver.warnings(candidate)]
    return ResolvedAgents(_load_all(chosen), left_out, [*notices, *warnings])


def apply_environment(settings: Settings, targets: Sequence[str] = (), *, only: str | None = None) -> None:
    """Set the variables of environment files, if `resolve_agents` would load an agent of the user.

    A command calls this before it configures its log, which must redact the secrets in these files. Raises SetupError.
    """
    resolver = _Resolver(settings, env_file.environ_without_files())
    resolver.apply_environment(_chosen(resolver.candidates(targets), only))


class _Candidate(msgspec.Struct, frozen=True):
    """An agent that may be offered. Its function `load` checks its settings and creates it."""

    name: str
    load: Callable[[], Agent]
    load_all: Callable[[], list[Agent]] | None = None
    """Creates all agents of a target that may hold several, such as an `AgentOS`; None if there is only one."""
    built_in: BuiltIn | None = None
    is_requested: bool = True
    """Whether a command-line target or a table of the settings names the agent."""
    target: str = ""
    """The target of a user's agent; "" for a built-in agent."""
    place: tuple[str, ...] = ()
    """Parts of the module or folder of a command-line target, which distinguish agents of the same name."""

    @property
    def is_left_out(self) -> bool:
        """Whether the agent is left out: it is built in, was not requested, and its extra is not installed."""
        return self.built_in is not None and not self.is_requested and not self.built_in.is_installed


def _load_all(candidates: Sequence[_Candidate]) -> list[Agent]:
    """Load the agents of all candidates. Raises a single SetupError with the mistakes of all of them."""
    agents: list[Agent] = []
    mistakes: list[str] = []
    for candidate in candidates:
        try:
            agents += _distinguished(candidate, agents)
        except SetupError as error:
            mistakes += error.detail.splitlines()
    if mistakes:
        raise SetupError("\n".join(dict.fromkeys(mistakes)))
    return agents


def _distinguished(candidate: _Candidate, others: Sequence[Agent]) -> list[Agent]:
    """Load the agents of a candidate. One of several that has the name of another agent gets the candidate's too."""
    if candidate.load_all is None:
        return [candidate.load()]
    loaded, taken = candidate.load_all(), {agent.name for agent in others}
    if len(loaded) == 1:
        return loaded
    return [
        msgspec.structs.replace(agent, name=f"{candidate.name}-{agent.name}"[-64:]) if agent.name in taken else agent
        for agent in loaded
    ]


def _load_one(candidates: Sequence[_Candidate], name: str) -> Agent:
    """Load the agent of this name, or the first one if the name is empty. Raises SetupError."""
    if not name or candidates[0].name == name:
        return candidates[0].load()
    agents = _load_all(candidates)
    found = [agent for agent in agents if agent.name == name]
    return found[0] if found else _unknown(name, [agent.name for agent in agents])


def _chosen(candidates: Sequence[_Candidate], only: str | None) -> list[_Candidate]:
    """Return the candidates to load: all that are available, or only the one named `only`.

    If no candidate has that name, it may be the name of an agent in a collection: all targets have to be loaded.
    """
    available = [candidate for candidate in candidates if not candidate.is_left_out]
    if only is None:
        return available
    named = [candidate for candidate in candidates if candidate.name == only]
    collections = [candidate for candidate in candidates if candidate.load_all is not None]
    if only and not named and collections:
        return collections
    return [_find(candidates if only else available, only)]


def _with_distinct_names(candidates: Sequence[_Candidate]) -> list[_Candidate]:
    """Rename candidates from command-line targets whose variables have the same name."""
    names = distinct_names([NamedTarget(candidate.name, candidate.place) for candidate in candidates])
    return [
        candidate if candidate.name == name else _renamed(candidate, name)
        for candidate, name in zip(candidates, names, strict=True)
    ]


def _renamed(candidate: _Candidate, name: str) -> _Candidate:
    """Return a candidate whose agent has another name. The agents of a collection keep their names."""
    load_all = candidate.load_all

    def renamed(agent: Agent) -> Agent:
        return msgspec.structs.replace(agent, name=name, title=name if agent.title == agent.name else agent.title)

    def load_renamed() -> list[Agent]:
        agents = [] if load_all is None else load_all()
        return [renamed(agents[0])] if len(agents) == 1 else agents

    return msgspec.structs.replace(
        candidate, name=name, load=lambda: renamed(candidate.load()), load_all=load_all and load_renamed
    )


def _find(candidates: Sequence[_Candidate], name: str) -> _Candidate:
    for candidate in candidates:
        if candidate.name == name or not name:
            return candidate
    return _unknown(name, [candidate.name for candidate in candidates])


def _unknown(name: str, names: Sequence[str]) -> NoReturn:
    hint = suggestion(name, names, f"; there are: {', '.join(names)}")
    raise SetupError(f"there is no agent {name!r}{hint}")


class _Resolver:
    """Finds the agents that targets and settings name, as candidates, and creates their agents."""

    def __init__(self, settings: Settings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ
        self._sources = load_sources(settings)
        self._sandbox_quota = SandboxQuota(settings.limits.sandboxes, settings.limits.sandboxes_per_user)

    def candidates(self, targets: Sequence[str]) -> list[_Candidate]:
        """Return the candidates from command-line targets or, if there are none, from the settings."""
        if not targets:
            return self.from_settings()
        return _with_distinct_names([candidate for target in targets for candidate in self.from_target(target)])

    def from_target(self, target: str) -> list[_Candidate]:
        """Return the candidates for one command-line argument: an agent's name, or a target.

        A project has a candidate for each graph.
        """
        if target in self._settings.agents:
            return [self._from_table(target)]
        found = built_in(target)
        if found is not None:
            return [self._from_catalogue(target, found, AgentSettings())]
        if (found := find_project(target)) is None:
            module, variable = split_target(target)
            name = variable.partition(".")[2] or variable  # `agent_os.writer` is an agent in a collection
            return [
                _Candidate(
                    name,
                    lambda: _load_target(target, self._sources)[0],
                    lambda: _load_target(target, self._sources),
                    target=target,
                    place=path_parts(module),
                )
            ]
        project, graph_name = found
        place = path_parts(str(project.file))
        return [
            _Candidate(graph.name, partial(project.load, graph, sources=self._sources), target=target, place=place)
            for graph in ([project.graph(graph_name)] if graph_name else project.graphs)
        ]

    def apply_environment(self, candidates: Sequence[_Candidate]) -> list[str]:
        """Set the environment variables of projects and of `server.env_file`, if there is an agent of the user.

        Built-in agents do not need them, so that a key in a file does not cost money. Returns a line for each variable
        that has no effect. Raises SetupError if a file cannot be read.
        """
        targets = list(dict.fromkeys(candidate.target for candidate in candidates if candidate.target))
        name = self._settings.server.env_file
        if not targets or not name:
            return []
        notices: list[str] = []
        for target in targets:
            found = None
            with suppress(SetupError):  # loading the agent raises it again
                found = find_project(target)
            notices += found[0].apply_env() if found is not None else ()
        if Path(name).is_file():
            notices += env_file.apply_file(Path(name))
        elif name != ServerSettings().env_file:
            place = self._settings.origin.place("server", "env_file")
            raise SetupError(f"{place}server.env_file: there is no file {name}")
        return list(dict.fromkeys(notices))

    def from_settings(self) -> list[_Candidate]:
        """Return the agents to offer that the `[agents]` tables and the catalogue define, as candidates.

        If a table defines an agent of the user, only the tables count, and the catalogue is left out.
        """
        tables = self._settings.agents
        if any(self._built_in_of(name) is None for name in tables):
            return [self._from_table(name) for name in tables]
        additional = [self._from_table(name) for name in tables if built_in(name) is None]
        return [*map(self._default, BUILT_INS), *additional]

    def warnings(self, candidate: _Candidate) -> list[str]:
        """Return a warning for each setting in a candidate's table that probably has no effect."""
        table = self._settings.agents.get(candidate.name)
        if table is None or candidate.built_in is None:
            return []
        return self._lines(candidate.name, status_mistakes(table, candidate.built_in))

    def _built_in_of(self, name: str) -> BuiltIn | None:
        """Return the built-in agent that the table of this name adjusts; None if it defines the user's own agent."""
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
        return _Candidate(name, lambda: self._load_own(name, table), target=table.target)

    def _from_catalogue(self, name: str, agent: BuiltIn, table: AgentSettings) -> _Candidate:
        return _Candidate(name, lambda: self._create_built_in(name, agent, table), built_in=agent)

    def _load_own(self, name: str, table: AgentSettings) -> Agent:
        """Load the user's own agent from the target of its table."""
        if not table.target:
            needed = f"needs a target, e.g. target = 'my_module:agent'{_built_in_hint(name)}"
            raise self._error(name, [Mistake("", needed)])
        mistakes = list(table_mistakes(table, None))
        try:
            sandbox = self._sandbox(table) if table.sandbox else None
            agent = _load_named(table.target, name, _options(table, sandbox), self._sources)
        except SetupError as error:
            wrong_target = Mistake("target", _with_built_in_hint(table.target, error.detail))
            raise self._error(name, [wrong_target, *mistakes]) from error
        mistakes += option_mistakes(table, agent.source.OPTIONS, agent.source.framework)
        self._check(name, mistakes or list(input_mistakes(table, agent.source)))
        return _apply_table(msgspec.structs.replace(agent, sandbox=sandbox), table)

    def _create_built_in(self, name: str, agent: BuiltIn, table: AgentSettings) -> Agent:
        supported = agent.source_type.OPTIONS | agent.settings | {"input", "context"}  # checked by `table_mistakes`
        options = option_mistakes(table, supported, agent.source_type.framework)
        self._check(name, [*table_mistakes(table, agent), *options])
        has_model = "model" in agent.settings
        model = self._model(name, table) if has_model else ModelChoice()
        sandbox = self._sandbox(table) if agent.runs_code or table.execute else None
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

    def _sandbox(self, table: AgentSettings) -> Sandbox:
        """Return the sandbox of an agent. Raises SetupError if this machine does not support the level that is set.

        A folder that an operator shares has no limit of its size.
        """
        settings = self._settings.sandbox
        limits = Limits(
            memory_mb=settings.memory_mb,
            cpu_seconds=settings.cpu_seconds,
            processes=settings.processes,
            file_mb=settings.file_mb,
            workspace_bytes=0 if table.workspace else self._settings.limits.workspace_bytes,
        )
        try:
            check_choice(settings.level)
        except SetupError as error:
            raise SetupError(f"{self._settings.origin.place('sandbox', 'level')}{error.detail}") from error
        variables = self._settings.server.env_file
        secret = (self._settings.store.data, self._settings.origin.file, variables if Path(variables).is_file() else "")
        return Sandbox(
            choice=settings.level,
            network=settings.network,
            limits=limits,
            read_only=tuple(str(Path(path).expanduser().absolute()) for path in settings.read_only),
            hidden=tuple(str(Path(path).absolute()) for path in secret if path),
            quota=self._sandbox_quota,
        )

    def _check(self, name: str, mistakes: Sequence[Mistake]) -> None:
        if mistakes:
            raise self._error(name, mistakes)

    def _error(self, name: str, mistakes: Iterable[Mistake]) -> SetupError:
        return SetupError("\n".join(self._lines(name, mistakes)))

    def _lines(self, name: str, mistakes: Iterable[Mistake]) -> list[str]:
        """Return an error line for each mistake in an agent's table, beginning with its place in the file."""
        place = self._settings.origin.place
        return [
            f"{place('agents', name, *filter(None, key.split('.', 1)))}[agents.{name}] {message}"
            for key, message in mistakes
        ]


def _load_named(target: str, name: str, options: Options, sources: Sequence[type[Source]]) -> Agent:
    """Load the agent of a table in the settings, from the table's target: a module, a file, or a graph of a project."""
    found = find_project(target)
    if found is None:
        return load_agent(target, name=name, options=options, sources=sources)
    project, graph_name = found
    return project.load(project.graph(graph_name), name=name, options=options, sources=sources)


def _load_target(target: str, sources: Sequence[type[Source]]) -> list[Agent]:
    """Load the agents of a command-line target: one that is named after its variable, or those of a collection."""
    try:
        agents = load_agents(target, sources=sources)
    except SetupError as error:
        raise SetupError(_with_built_in_hint(target, error.detail)) from error
    for agent in agents:
        if not is_agent_name(agent.name):
            raise SetupError(f"target {target!r}: {agent.name!r} cannot be the name of an agent: {AGENT_NAME_RULE}")
    return agents


def _with_built_in_hint(target: str, message: str) -> str:
    """Append the names of built-in agents to an error about a target that looks like an agent's name."""
    return message if ":" in target or target.endswith(".py") else f"{message}{_built_in_hint(target)}"


def _built_in_hint(word: str) -> str:
    names = [agent.name for agent in BUILT_INS]
    return suggestion(word, names, f", or the name of a built-in agent: {', '.join(names)}")


def _search_url_error(url: str) -> str:
    if "{query}" not in url:
        return "has no {query}, which the search words replace"
    return "" if is_http_url(url) else "is not a valid address: it has to begin with http:// or https://"


def _approved_tools(agent: BuiltIn, table: AgentSettings) -> tuple[str, ...]:
    """Return the names of the tools that need approval: those in the table's `approve`, or the agent's defaults.

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
        input=_json_values(table.input),
        context=_json_values(table.context),
    )


def _json_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values of a configuration file as JSON values: dates and times become texts."""
    return msgspec.to_builtins(values)


def _apply_table(agent: Agent, table: AgentSettings) -> Agent:
    """Return a copy of the agent to which the settings of its table are applied."""
    return msgspec.structs.replace(
        agent,
        title=table.title or agent.title,
        description=table.description or agent.description,
        enable_streaming=table.enable_streaming,
        max_steps=table.max_steps,
        status=table.status,
        python_tools=tuple(table.python_tools),
        workspace=str(Path(table.workspace).expanduser()) if table.workspace else "",
        context_from_request=_names_or_bool(table.context_from_request),
    )


def _names_or_bool(setting: bool | list[str]) -> bool | tuple[str, ...]:
    return tuple(setting) if isinstance(setting, list) else setting
