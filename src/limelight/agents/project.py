"""Reads LangGraph projects: finds `langgraph.json`, and reads its graphs, its import path and its environment.

`resolve` asks for the project of a target, offers its graphs as agents, and applies its environment before it loads
them. Packages that a project requires are not installed; those that are missing are named.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from limelight.agents.load import load_agent
from limelight.agents.module_import import append_paths, display_path, missing_requirements, prepend_path
from limelight.config import env_file
from limelight.errors import SetupError
from limelight.runs.agent_registry import Agent
from limelight.sources.base import NO_OPTIONS, Options, Source

PROJECT_FILE = "langgraph.json"
SOURCES = "src"
LOCAL_PREFIXES = (".", "/")
PYTHON_FILE = ".py"
OTHER_FILES = (".ts", ".mts", ".cts", ".js", ".mjs", ".cjs", ".tsx")
INVALID_NAME_CHARS = re.compile(r"[^A-Za-z0-9._-]+")
FOLDER_RULE = (
    "name a folder with a langgraph.json, a file and a variable (path/to/file.py:agent), or a module and a variable "
    "(package.module:agent)"
)


class Graph(msgspec.Struct, frozen=True):
    """An entry of `graphs` in `langgraph.json`: its key, its path with the variable, and its description."""

    key: str
    path: str
    description: str = ""

    @property
    def name(self) -> str:
        """The key of the graph in a form that can be the name of an agent and part of a URL."""
        return INVALID_NAME_CHARS.sub("-", self.key).strip("-._")[:64]


class Project(msgspec.Struct, frozen=True):
    """A LangGraph project: the path and the content of its `langgraph.json`."""

    file: Path
    graphs: list[Graph]
    dependencies: list[str] = []
    env: str | dict[str, str] = ""

    @property
    def folder(self) -> Path:
        return self.file.parent

    def graph(self, name: str) -> Graph:
        """Return the graph with this name, or the only graph if the name is empty. Raises SetupError."""
        keys = [graph.key for graph in self.graphs]
        found = [graph for graph in self.graphs if not name or name in (graph.key, graph.name)]
        if len(found) == 1:
            return found[0]
        if name:
            raise SetupError(f"{display_path(self.file)} has no graph {name!r}; it has: {', '.join(keys)}")
        example = f"{display_path(self.file)}:{keys[0]}"
        raise SetupError(
            f"{display_path(self.file)} has several graphs: {', '.join(keys)}; name one of them: {example}"
        )

    def load(
        self, graph: Graph, *, name: str = "", options: Options = NO_OPTIONS, sources: Sequence[type[Source]] = ()
    ) -> Agent:
        """Load one of the project's graphs as an agent. Raises SetupError."""
        self._set_up_import_path()
        where = f"{display_path(self.file)}: graph {graph.key!r}"
        path, _, variable = graph.path.rpartition(":")
        if path.endswith(OTHER_FILES):
            raise SetupError(f"{where} is JavaScript ({graph.path}), which Limelight does not run")
        if not path or not variable:
            raise SetupError(f"{where}: write ./path/file.py:variable or package.module:variable, not {graph.path!r}")
        file = self.folder / path
        target = f"{display_path(file.resolve()) if path.endswith(PYTHON_FILE) else path}:{variable}"
        try:
            agent = load_agent(target, name=name or graph.name, options=options, sources=sources)
        except SetupError as error:
            raise SetupError(f"{where}: {error.detail}{self._missing_packages_hint()}") from error
        title = agent.title if name else graph.key
        return msgspec.structs.replace(agent, title=title, description=graph.description or agent.description)

    def _missing_packages_hint(self) -> str:
        missing = missing_requirements(self.requirements())
        if not missing:
            return ""
        return f"; packages of `dependencies` that are not installed: pip install {' '.join(missing)}"

    def requirements(self) -> list[str]:
        """Return the project's dependencies that are packages to install, not local folders."""
        return [line for line in self.dependencies if not line.startswith(LOCAL_PREFIXES) and "://" not in line]

    def _set_up_import_path(self) -> None:
        """Put the local folders of `dependencies` first on the import path, and the project's own folder after them."""
        for folder in reversed(self.local_folders()):
            if (folder / SOURCES).is_dir():
                prepend_path(folder / SOURCES)
            prepend_path(folder)
        append_paths(self.folder, self.folder / SOURCES)

    def local_folders(self) -> list[Path]:
        """Return the local folders among the project's dependencies. Raises SetupError if one does not exist."""
        folders: list[Path] = []
        for line in self.dependencies:
            if not line.startswith(LOCAL_PREFIXES):
                continue
            folder = (self.folder / line).resolve()
            if not folder.is_dir():
                raise SetupError(f"{display_path(self.file)}: the folder {line!r} of `dependencies` does not exist")
            folders.append(folder)
        return folders

    def apply_env(self) -> list[str]:
        """Set the project's environment variables. Returns a line about those that have no effect."""
        if isinstance(self.env, dict):
            return env_file.apply_variables(self.env, display_path(self.file))
        path = self.env_path()
        if path is None:
            return []
        if not path.is_file():
            example = self.folder / ".env.example"
            hint = f"; copy {display_path(example)} and fill it in" if example.is_file() else ""
            return [f"{display_path(self.file)}: the file {self.env!r} of `env` does not exist{hint}"]
        return env_file.apply_file(path)

    def env_path(self) -> Path | None:
        """Return the environment file that `langgraph.json` names; None if it names none."""
        return self.folder / self.env if isinstance(self.env, str) and self.env else None


def find_project(target: str) -> tuple[Project, str] | None:
    """Return the LangGraph project at a target, with a graph's name or ""; None if there is no project.

    Such a target is a folder with a `langgraph.json`, or that file, with `:name` for one graph. Raises SetupError.
    """
    place, colon, name = target.rpartition(":")
    for path, graph in ((Path(target), ""), *([(Path(place), name)] if colon and place else [])):
        if path.suffix == ".json":
            return read_project(path, target), graph
        if path.is_dir() and target:
            if (path / PROJECT_FILE).is_file():
                return read_project(path / PROJECT_FILE, target), graph
            if not graph and _names_folder(target, path):
                raise SetupError(
                    f"target {target!r}: the folder has no langgraph.json{_agents_hint(path)}; {FOLDER_RULE}"
                )
    return None


def _names_folder(target: str, folder: Path) -> bool:
    """Whether a target must mean a folder, because it cannot be the name of a module."""
    return not target.isidentifier() or not (folder / "__init__.py").is_file()


def _agents_hint(folder: Path) -> str:
    """Return the Python files in a folder that probably define an agent, for an error message."""
    files = [file for file in sorted(folder.glob("*.py")) if re.search(r"(?m)^(?:agent|graph|app) *=", _text(file))]
    return f" (it has {', '.join(display_path(file.resolve()) for file in files[:3])})" if files else ""


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def read_project(file: Path, target: str = "") -> Project:
    """Read a `langgraph.json`. Raises SetupError, whose line names the mistake in the file."""
    label = f"target {target!r}: " if target else ""
    try:
        content = msgspec.json.decode(file.read_bytes())
    except OSError as error:
        raise SetupError(f"{label}{file} cannot be read: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise SetupError(f"{display_path(file)} is not valid JSON: {error}") from error
    if not isinstance(content, dict):
        raise SetupError(f"{display_path(file)} has to be an object with `graphs`")
    fields = cast("dict[str, Any]", content)
    graphs = list(_graphs(fields.get("graphs"), file))
    dependencies: object = fields.get("dependencies") or []
    if not isinstance(dependencies, list):
        raise SetupError(f"{display_path(file)}: `dependencies` has to be a list")
    env = fields.get("env") or ""
    if isinstance(env, dict):
        env = {str(name): str(value) for name, value in cast("dict[str, Any]", env).items()}
    elif not isinstance(env, str):
        raise SetupError(f"{display_path(file)}: `env` has to be the path of a file, or an object with variables")
    return Project(file.resolve(), graphs, [str(line) for line in cast("list[Any]", dependencies)], env)


def _graphs(entries: Any, file: Path) -> Iterator[Graph]:
    if not isinstance(entries, dict) or not entries:
        example = '{"graphs": {"agent": "./agent.py:graph"}}'
        raise SetupError(f"{display_path(file)} names no graphs; write for example {example}")
    for key, entry in cast("dict[str, Any]", entries).items():
        fields: dict[str, Any] = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {"path": entry}
        path, description = fields.get("path"), fields.get("description") or ""
        if not isinstance(path, str):
            raise SetupError(
                f'{display_path(file)}: graph {key!r} has to be "./path/file.py:variable", or an object with `path`'
            )
        graph = Graph(key, path, " ".join(str(description).split()))
        if not graph.name:
            raise SetupError(f"{display_path(file)}: graph {key!r} needs a name with a letter or a digit")
        yield graph
