"""Sources in files of the user: how settings name them, and which mistakes are reported."""

import sys
from pathlib import Path

import pytest

from limelight.agents.local_sources import load_sources, with_sources
from limelight.agents.resolve import resolve_agents
from limelight.config import Settings, load_settings
from limelight.errors import SetupError

SOURCES = '''
from limelight.events import FinalAnswer, RunFinished
from limelight.sources.base import Source

class Box:
    """An agent of the framework."""
    async def run(self, messages, ctx):
        yield "as a function"

box = Box()

class BoxSource(Source):
    framework = "box"
    def __init__(self, target, options=None): ...
    @classmethod
    def accepts(cls, target):
        return isinstance(target, Box)
    async def run(self, turn):
        yield FinalAnswer(content="boxed")
        yield RunFinished()

class Incomplete(Source):
    framework = "box"

class WithoutOptions(BoxSource):
    def __init__(self, target): ...

class Raising(BoxSource):
    @classmethod
    def accepts(cls, target):
        raise KeyError("kind")

number = 5
'''


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a file of sources."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_sources.py").write_text(SOURCES)
    return tmp_path


def configured(text: str) -> Settings:
    Path("config.toml").write_text(text)
    return load_settings(environ={})


@pytest.mark.requirement("local-sources")
def test_source_of_a_file_is_asked_before_the_installed_ones() -> None:
    settings = load_settings(environ={})
    assert resolve_agents(settings, ["my_sources.py:box"]).agents[0].source.framework == "function"
    agents = resolve_agents(with_sources(settings, ["my_sources.py:BoxSource"]), ["my_sources.py:box"]).agents
    assert [(agent.name, agent.source.framework, agent.description) for agent in agents] == [("box", "box", "")]


def test_source_of_the_configuration_serves_the_agents_of_its_tables() -> None:
    settings = configured('[sources]\nbox = "my_sources.py:BoxSource"\n[agents.it]\ntarget = "my_sources.py:box"\n')
    assert [agent.source.framework for agent in resolve_agents(settings).agents] == ["box"]


def test_built_in_agents_stay_on_offer_with_a_source() -> None:
    settings = configured('[sources]\nbox = "my_sources.py:BoxSource"\n')
    names = [agent.name for agent in resolve_agents(settings).agents]
    assert names == [agent.name for agent in resolve_agents(Settings()).agents]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("nowhere.py:Box", "target 'nowhere.py:Box': there is no file nowhere.py"),
        ("my_sources.py:Missing", "my_sources.py has no 'Missing'; it has: .*BoxSource"),
        ("my_sources.py:number", "is a int; a source is a class, so write file.py:ClassName"),
        ("my_sources.py:Box", "the class Box has no `framework` and no `accepts`, so it is not a source"),
        ("my_sources.py:Incomplete", "the class Incomplete has no `accepts` and no `run`"),
    ],
)
def test_invalid_source_is_reported_with_its_place(target: str, message: str) -> None:
    with pytest.raises(SetupError, match=rf"^config\.toml:2: .*{message}"):
        load_sources(configured(f'[sources]\nbox = "{target}"\n'))
    with pytest.raises(SetupError, match=r"^--source: target "):
        load_sources(with_sources(load_settings(Path("/dev/null"), environ={}), [target]))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("Raising", "Raising.accepts.. has failed: KeyError: 'kind'"),
        ("WithoutOptions", "target 'my_sources.py:box': WithoutOptions cannot be created: TypeError"),
    ],
)
def test_source_that_fails_for_an_agent_is_named(source: str, message: str) -> None:
    settings = with_sources(load_settings(environ={}), [f"my_sources.py:{source}"])
    with pytest.raises(SetupError, match=message):
        resolve_agents(settings, ["my_sources.py:box"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[sources]\nbox = 5\n", r"config.toml:2: \[sources\] box is wrong: expected a target in quotes"),
        ("sources = 5\n", r"config.toml:1: \[sources\] has to be a table"),
        ("[source]\nbox = 'x'\n", r"config.toml:1: there is no section \[source\]; did you mean 'sources'\?"),
    ],
)
def test_mistake_in_the_table_is_reported(text: str, message: str) -> None:
    with pytest.raises(SetupError, match=message):
        configured(text)
