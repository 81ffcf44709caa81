"""Loading of agents from targets, and the errors of invalid ones."""

import builtins
import logging
import os
import sys
import threading
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from textwrap import dedent

import pytest

from limelight.agents import module_import
from limelight.agents.load import load_agent, wrap
from limelight.errors import SetupError
from limelight.sources.base import Options
from limelight.sources.factory_source import FactorySource
from limelight.sources.function import FunctionSource

BOTS = dedent(
    '''
    async def agent(messages, ctx):
        """Says hello.

        And more.
        """
        yield "hello"

    async def other(messages, ctx):
        return "hi"

    def factory():
        return agent

    async def async_factory():
        return agent

    async def failing_async_factory():
        raise RuntimeError("no database")

    async def any_arguments(*arguments):
        return "hi"

    def failing_factory():
        raise RuntimeError("no model")

    def needs_arguments(a, b=1):
        return agent

    async def one_argument(question):
        yield question

    number = 5
    class Klass: ...
    '''
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """The working directory, with modules of agents. Modules that a test imports are removed from sys.modules."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "limelight_bots.py").write_text(BOTS)
    (tmp_path / "neighbour.py").write_text("from limelight_bots import agent as bot\n")
    (tmp_path / "code.py").write_text(BOTS)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("limelight_bots:agent", "agent"),
        ("limelight_bots", "agent"),
        ("limelight_bots:other", "other"),
        ("limelight_bots:factory", "factory"),
        ("limelight_bots.py:agent", "agent"),
        ("limelight_bots.py", "agent"),
        ("./code.py:other", "other"),
        ("neighbour.py:bot", "bot"),
    ],
)
def test_target_is_loaded_from_a_module_or_a_file(target: str, name: str) -> None:
    agent = load_agent(target)
    assert isinstance(agent.source, FunctionSource)
    assert (agent.name, agent.title) == (name, name)


def test_description_is_the_first_line_of_the_docstring() -> None:
    assert load_agent("limelight_bots:agent").description == "Says hello."
    assert load_agent("limelight_bots:other").description == ""


def test_given_name_overrides_the_variable_name() -> None:
    agent = load_agent("limelight_bots:agent", name="bot")
    assert (agent.name, agent.title, agent.description) == ("bot", "bot", "Says hello.")


def test_file_with_the_name_of_a_module_does_not_replace_it() -> None:
    load_agent("code.py:agent")
    assert "code" not in sys.modules or not hasattr(sys.modules["code"], "agent")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("limelight_bots:nobody", r"'limelight_bots:nobody': limelight_bots has no 'nobody'; it has: agent, other, "),
        ("json:agent", r"target 'json:agent': json has no 'agent'$"),
        (
            "no_such_module:agent",
            r"there is no module 'no_such_module' here; write module:name or path/to/file\.py:name",
        ),
        (":agent", r"target ':agent': write module:name or path/to/file\.py:name"),
        ("limelight_bots:", r"target 'limelight_bots:': write module:name or path/to/file\.py:name"),
        ("json.nothing:agent", r"there is no module 'json\.nothing' here; write module:name"),
        ("no_such_file.py:agent", r"target 'no_such_file\.py:agent': there is no file no_such_file\.py"),
        (
            "limelight_bots:number",
            r"is an object of the class int, which no installed source takes \(.*function.*\); an async generator",
        ),
        (
            "limelight_bots:Klass",
            r"is an object of the class limelight_bots\.Klass, which no installed source",
        ),
        (
            "limelight_bots:Klass",
            r"a source for another framework can be installed, or written in a file: docs/your-own",
        ),
        ("limelight_bots:Klass", r"`async def agent\(messages, ctx\)` always works"),
        (
            "limelight_bots:needs_arguments",
            r"is a function with the parameters \(a, b=1\): an agent takes \(messages, ctx\), and a factory nothing",
        ),
        (
            "limelight_bots:one_argument",
            r"is a function with the parameters \(question\): an agent takes \(messages, ctx",
        ),
        ("builtins:min", r"is a function, which no installed source takes"),
    ],
)
def test_invalid_target_is_reported_with_a_fix(target: str, message: str) -> None:
    with pytest.raises(SetupError, match=message):
        load_agent(target)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "import limelight_missing_package",
            "needs the package 'limelight_missing_package': pip install limelight_missing",
        ),
        ("import limelight_missing_package.part", "needs the package 'limelight_missing_package'"),
        ("1 / 0", "cannot be imported: ZeroDivisionError: division by zero"),
        ("def broken(", "cannot be imported: SyntaxError"),
        ("from json import nothing", "cannot be imported: ImportError: cannot import name 'nothing'"),
    ],
)
@pytest.mark.parametrize("target", ["broken_bot:agent", "broken_bot.py:agent"])
def test_failed_import_is_reported_in_one_line(folder: Path, target: str, source: str, message: str) -> None:
    (folder / "broken_bot.py").write_text(source)
    with pytest.raises(SetupError) as caught:
        load_agent(target)
    assert message in caught.value.detail
    assert caught.value.detail.startswith(f"target {target!r}")
    assert "\n" not in caught.value.detail


@pytest.mark.parametrize("target", ["script_bot.py:agent", "script_bot.py", "script_bot:agent.part"])
def test_script_that_fails_after_it_has_made_the_agent_is_reported_with_advice(folder: Path, target: str) -> None:
    (folder / "script_bot.py").write_text("agent = 1\n1 / 0")
    with pytest.raises(SetupError) as caught:
        load_agent(target)
    advice = "(script_bot.py:2); 'agent' was already made: lines that only run it belong under if __name__ =="
    assert advice in caught.value.detail


def test_long_import_is_logged_while_it_lasts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logged = threading.Event()
    texts: list[str] = []

    class Watcher(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            texts.append(record.getMessage())
            logged.set()

    watcher = Watcher()
    module_import.log.addHandler(watcher)
    monkeypatch.setattr(module_import, "SLOW_SECONDS", 0.0)
    (folder / "slow_bot.py").write_text("import builtins\nassert builtins.limelight_logged.wait(60)\nagent = None\n")
    monkeypatch.setattr(builtins, "limelight_logged", logged, raising=False)
    try:
        with pytest.raises(SetupError, match="which no installed source takes"):
            load_agent("slow_bot.py:agent")
    finally:
        module_import.log.removeHandler(watcher)
    assert texts == [module_import.SLOW_IMPORT % "slow_bot.py:agent"]


async def test_coroutine_function_without_parameters_is_a_factory(folder: Path) -> None:
    source = load_agent("limelight_bots:async_factory").source
    assert isinstance(source, FactorySource)
    await source.open(NoResources())
    assert (source.framework, source.description, source.keeps_memory) == ("function", "Says hello.", True)
    assert isinstance(load_agent("limelight_bots:any_arguments").source, FunctionSource)
    failing = load_agent("limelight_bots:failing_async_factory").source
    with pytest.raises(SetupError, match="failing_async_factory' cannot be created: RuntimeError: no database"):
        await failing.open(NoResources())


async def test_unsupported_options_of_a_factory_are_refused() -> None:
    source = load_agent("limelight_bots:async_factory", options=Options(max_steps=3)).source
    with pytest.raises(SetupError, match="max_steps has no effect on this agent"):
        await source.open(NoResources())


class NoResources:
    """Agent resources that are not used."""

    data = Path()

    async def understudy(self) -> tuple[str, str]:
        raise RuntimeError


def test_failed_factory_is_reported() -> None:
    with pytest.raises(SetupError, match="'limelight_bots:failing_factory' cannot be created: RuntimeError: no model"):
        load_agent("limelight_bots:failing_factory")


def test_wrap_accepts_objects_and_factories() -> None:
    async def mine(messages: object, ctx: object) -> AsyncGenerator[str]:
        yield "x"

    assert isinstance(wrap(mine, "mine"), FunctionSource)
    assert isinstance(wrap(lambda: mine, "factory"), FunctionSource)


def test_file_is_imported_once_and_again_after_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "twins.py"
    path.write_text("raise RuntimeError('not yet')\n")
    with pytest.raises(SetupError, match="RuntimeError: not yet"):
        load_agent(f"{path}:one")
    path.write_text(
        "state = []\nasync def one(messages, ctx):\n    yield 'a'\nasync def two(messages, ctx):\n    yield 'b'\n"
    )
    os.utime(path, (1, 1))  # so that the compiled file of the first attempt is not used
    modules = {sys.modules[name] for name in _module_names(f"{path}:one", f"{path}:two")}
    assert len(modules) == 1


def _module_names(*targets: str) -> list[str]:
    """Load targets of one file, and return the names of its modules."""
    for target in targets:
        load_agent(target)
    stem = Path(targets[0].rpartition(":")[0]).stem
    return [name for name in sys.modules if name.startswith(f"limelight_target_{stem}_")]
