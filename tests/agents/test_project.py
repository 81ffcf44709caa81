"""LangGraph projects of every layout: served as they are, with their import path, environment and factories."""

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from limelight.agents.resolve import ResolvedAgents, resolve_agents
from limelight.config import load_settings
from limelight.errors import SetupError
from limelight.redaction.rules import make_redactor
from limelight.server.app import create_app
from tests.support.server import Served, asking, serving

pytestmark = pytest.mark.usefixtures("project_folder")

GRAPH = """
import os
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph


def compiled(answer):
    model = GenericFakeChatModel(messages=iter([AIMessage(answer)] * 9))

    async def speak(state):
        return {"messages": [await model.ainvoke(state["messages"])]}

    return StateGraph(MessagesState).add_node(speak).add_edge(START, "speak").compile()
"""
RELATIVE = "from .parts import compiled\nfrom my_bees.words import ANSWER\n\ngraph = compiled(ANSWER)\n"
FACTORIES = f"""{GRAPH}
import asyncio
from contextlib import asynccontextmanager, contextmanager

events = []


def plain():
    return compiled("plain")


def with_config(config):
    return compiled("config" + str(sorted(config)[0]))


async def with_runtime(runtime):
    return compiled("runtime" + str(runtime.user))


async def generator():
    events.append(asyncio.current_task())
    yield compiled("generator")
    events.append(asyncio.current_task())


def sync_generator(config):
    events.append("open")
    yield compiled("sync_generator")
    events.append("close")


@asynccontextmanager
async def manager(config):
    events.append("open")
    try:
        yield compiled("manager")
    finally:
        events.append("close")


@contextmanager
def sync_manager():
    events.append("open")
    yield compiled("sync_manager")
    events.append("close")


class Opened:
    async def __aenter__(self):
        events.append("open")
        return compiled("object")

    async def __aexit__(self, *_):
        events.append("close")


an_object = Opened()


def returns_manager():
    return Opened()


@asynccontextmanager
async def failing():
    if len(events) < 1:
        events.append("failed")
        raise OSError("no database")
    yield compiled("failing")


@asynccontextmanager
async def failing_at_close():
    yield compiled("failing_at_close")
    raise OSError("cannot disconnect")
"""


def write(files: dict[str, str]) -> None:
    for name, text in files.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def langgraph_json(graphs: dict[str, Any], **fields: Any) -> str:
    return json.dumps({"dependencies": ["."], "graphs": graphs, **fields})


def resolved(*targets: str, config: str = "", **overrides: Any) -> ResolvedAgents:
    Path("config.toml").write_text(config)
    settings = {("server", name): value for name, value in overrides.items()}
    return resolve_agents(load_settings(environ={}, overrides=settings), targets, environ={})


def error_of(*targets: str, config: str = "") -> str:
    with pytest.raises(SetupError) as caught:
        resolved(*targets, config=config)
    return caught.value.detail


@asynccontextmanager
async def serving_project(*targets: str, **overrides: Any) -> AsyncGenerator[Served]:
    async with serving(agents=resolved(*targets, **overrides).agents, data=Path("data")) as served:
        yield served


async def answer(served: Served, agent: str) -> str:
    reply = (await served.http.post("/chat", json=asking("bees?", agent=agent))).json()
    return reply["message"]["content"] if reply.get("state") == "finished" else json.dumps(reply)


LAYOUTS: dict[str, dict[str, str]] = {
    "flat": {
        "agent.py": "from parts import compiled\ngraph = compiled('dance')\n",
        "parts.py": GRAPH,
        "langgraph.json": langgraph_json({"bees": "./agent.py:graph"}),
    },
    "src package with relative imports": {
        "src/my_bees/__init__.py": "",
        "src/my_bees/graph.py": RELATIVE,
        "src/my_bees/parts.py": GRAPH,
        "src/my_bees/words.py": "ANSWER = 'dance'\n",
        "langgraph.json": langgraph_json({"bees": "./src/my_bees/graph.py:graph"}),
    },
    "dotted path": {
        "src/my_bees/__init__.py": "",
        "src/my_bees/graph.py": RELATIVE,
        "src/my_bees/parts.py": GRAPH,
        "src/my_bees/words.py": "ANSWER = 'dance'\n",
        "langgraph.json": langgraph_json({"bees": {"path": "my_bees.graph:graph", "description": "Knows bees"}}),
    },
    "local dependency": {
        "app/main.py": "from my_bees.parts import compiled\ngraph = compiled('dance')\n",
        "libs/my_bees/parts.py": GRAPH,
        "langgraph.json": langgraph_json({"bees": "./app/main.py:graph"}, dependencies=["./libs", "langgraph"]),
    },
    "src without __init__.py": {
        "src/my_bees/graph.py": "from my_bees.parts import compiled\ngraph = compiled('dance')\n",
        "src/my_bees/parts.py": GRAPH,
        "langgraph.json": langgraph_json({"bees": "./src/my_bees/graph.py:graph"}, dependencies=["."]),
    },
}


@pytest.mark.requirement("langgraph-projects")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("folder", [".", "inner"])
async def test_project_of_each_layout_is_served_from_any_folder(layout: str, folder: str) -> None:
    write({f"{folder}/{name}": text for name, text in LAYOUTS[layout].items()})
    async with serving_project(folder) as served:
        assert await answer(served, "bees") == "dance"


def test_graphs_get_names_and_descriptions_of_the_file() -> None:
    graphs = {"bees": {"path": "./agent.py:graph", "description": "Knows\n bees"}, "my wasps": "./agent.py:graph"}
    write({"agent.py": f"{GRAPH}graph = compiled('x')\n", "langgraph.json": langgraph_json(graphs)})
    first, second = resolved("langgraph.json").agents
    assert (first.name, first.title, first.description) == ("bees", "bees", "Knows bees")
    assert (second.name, second.title) == ("my-wasps", "my wasps")
    assert [agent.name for agent in resolved("langgraph.json:my-wasps").agents] == ["my-wasps"]
    table = '[agents.helper]\ntarget = "langgraph.json:bees"'
    assert [agent.name for agent in resolved(config=table).agents] == ["helper"]
    assert error_of(config='[agents.helper]\ntarget = "."').startswith(
        "config.toml:2: [agents.helper] langgraph.json has several graphs: bees, my wasps; name one of them: "
    )


@pytest.mark.requirement("factories-closed")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("generator", "generator"),
        ("sync_generator", "sync_generator"),
        ("manager", "manager"),
        ("sync_manager", "sync_manager"),
        ("an_object", "object"),
        ("returns_manager", "object"),
    ],
)
async def test_factory_is_opened_with_the_server_and_closed_with_it(name: str, expected: str) -> None:
    write({"bots.py": FACTORIES, "langgraph.json": langgraph_json({"bees": f"./bots.py:{name}"})})
    async with serving_project(".") as served:
        (source,) = [agent.source for agent in served.runtime.agents]
        events = events_of("bots")
        assert len(events) == 1
        assert await answer(served, "bees") == expected
        assert await answer(served, "bees") == expected
        assert (len(events), source.framework) == (1, "langgraph")
    first, last = events
    assert (first, last) == ("open", "close") or first is last, "one task opens and closes"


@pytest.mark.parametrize(
    ("name", "expected"), [("plain", "plain"), ("with_config", "configconfigurable"), ("with_runtime", "runtimeNone")]
)
async def test_factory_gets_the_arguments_of_langgraph(name: str, expected: str) -> None:
    write({"bots.py": FACTORIES, "langgraph.json": langgraph_json({"bees": f"./bots.py:{name}"})})
    async with serving_project("bots.py:" + name) as served:
        assert await answer(served, name) == expected


@pytest.mark.requirement("factories-closed")
async def test_factory_that_fails_leaves_the_other_agents_and_is_opened_again(caplog: pytest.LogCaptureFixture) -> None:
    write({"bots.py": FACTORIES})
    async with serving_project("bots.py:failing", "bots.py:plain", "bots.py:failing_at_close") as served:
        failure = "target 'bots.py:failing' cannot be created: OSError: no database (bots.py:"
        assert failure in caplog.text
        ready = (await served.http.get("/ready")).json()
        assert ready["checks"]["agents_failed"] == "failing"
        assert await answer(served, "plain") == "plain"
        assert await answer(served, "failing") == "failing"
        assert "agents_failed" not in (await served.http.get("/ready")).json()["checks"]
    assert "agent failing_at_close could not be closed: " in caplog.text
    assert "cannot be closed: OSError: cannot disconnect (bots.py:" in caplog.text


async def test_server_whose_only_factory_fails_does_not_start() -> None:
    write({"bots.py": FACTORIES})
    settings = load_settings(environ={}, overrides={("store", "data"): "data"})
    app = create_app(settings, resolved("bots.py:failing").agents)
    with pytest.raises(
        SetupError, match=r"'bots\.py:failing' cannot be created: OSError: no database \(bots\.py:\d+\)"
    ):
        await app.state.runtime.start()


@pytest.mark.parametrize("target", ["bots.py:client", "bots.py:make"])
async def test_context_manager_that_yields_no_agent_is_refused(target: str) -> None:
    client = "class Client:\n    def __enter__(self): return self\n    def __exit__(self, *_): ...\n"
    write({"bots.py": f"{client}client = Client()\ndef make(): return client\n"})
    settings = load_settings(environ={}, overrides={("store", "data"): "data"})
    app = create_app(settings, resolved(target).agents)
    with pytest.raises(SetupError, match=f"'{target}' is an object of the class Client, which no installed source"):
        await app.state.runtime.start()


def events_of(module: str) -> list[Any]:
    """The list `events` of a target of this project. Other tests may have loaded files of the same name."""
    prefix, path = f"limelight_target_{module}_", str(Path(f"{module}.py").resolve())
    (found,) = [loaded for name, loaded in sys.modules.items() if name.startswith(prefix) and loaded.__file__ == path]
    return found.events


ENV_GRAPH = f"{GRAPH}graph = compiled(os.environ.get('BEE_API_KEY', 'none') + os.environ.get('LIMELIGHT_MODEL', ''))\n"


@pytest.mark.requirement("env-file")
@pytest.mark.parametrize(
    ("files", "env"),
    [
        ({".env": "BEE_API_KEY=swarm-of-bees\nLIMELIGHT_MODEL=big\n"}, ""),
        ({"bees.env": "export BEE_API_KEY='swarm-of-bees'\n"}, "bees.env"),
        ({}, {"BEE_API_KEY": "swarm-of-bees", "LIMELIGHT_MODEL": "big"}),
        ({".env": "BEE_API_KEY=other-text-here", "bees.env": "BEE_API_KEY=swarm-of-bees\n"}, "bees.env"),
    ],
)
async def test_environment_of_a_project_reaches_its_graphs_and_is_redacted(
    files: dict[str, str], env: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LIMELIGHT_MODEL", raising=False)
    write({"agent.py": ENV_GRAPH, "langgraph.json": langgraph_json({"bees": "./agent.py:graph"}, env=env), **files})
    offer = resolved(".")
    async with serving(agents=offer.agents, data=Path("data")) as served:
        assert await answer(served, "bees") == "[redacted]"
    if "LIMELIGHT_MODEL" in str((files, env)):
        assert "LIMELIGHT_MODEL skipped: a file cannot set variables of Limelight itself" in offer.hint


@pytest.mark.requirement("env-file")
async def test_existing_variables_win_and_the_file_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    write({".env": "BEE_API_KEY=from-the-file-1\n", "agent.py": ENV_GRAPH})
    async with serving_project("agent.py:graph", env_file="") as served:
        assert await answer(served, "graph") == "none"
    monkeypatch.setenv("BEE_API_KEY", "mine")
    write({"other.py": ENV_GRAPH})
    async with serving_project("other.py:graph") as served:
        assert await answer(served, "graph") == "mine"
    assert make_redactor(load_settings(environ={})).redact_text("from-the-file-1") == "[redacted]"


@pytest.mark.requirement("env-file")
def test_built_in_agents_ignore_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("LIMELIGHT_MODEL", "big")
    write({".env": "OPENAI_API_KEY=sk-expensive-key\n", "agent.py": ENV_GRAPH, "config.toml": ""})
    settings = load_settings(environ={})
    resolve_agents(settings, ["agent.py:graph"])
    with pytest.raises(SetupError, match="needs a key: set OPENAI_API_KEY"):
        resolve_agents(settings, ["react"])


def test_missing_or_invalid_environment_file_is_a_notice() -> None:
    project = langgraph_json({"bees": "./agent.py:graph"}, env=".env")
    write({"agent.py": ENV_GRAPH, ".env.example": "", "langgraph.json": project})
    assert (
        resolved(".").hint
        == "langgraph.json: the file '.env' of `env` does not exist; copy .env.example and fill it in"
    )
    write({".env": "A=1\nnonsense\n"})
    assert resolved(".").hint == ".env:2: is not NAME=value, and is skipped"
    config = '[server]\nenv_file = "none.env"\n[agents.x]\ntarget = "."'
    assert error_of(config=config) == "config.toml:2: server.env_file: there is no file none.env"


@pytest.mark.parametrize(
    ("files", "target", "message"),
    [
        (
            {"x/bot.py": "agent = 1"},
            "x",
            "the folder has no langgraph.json (it has x/bot.py); name a folder with a langg",
        ),
        ({}, ".", "target '.': the folder has no langgraph.json; name a folder with a langgraph.json, a file and a"),
        ({}, "langgraph.json", "langgraph.json cannot be read: No such file or directory"),
        ({"langgraph.json": "{"}, ".", "langgraph.json is not valid JSON: "),
        ({"langgraph.json": "[]"}, ".", "langgraph.json has to be an object with `graphs`"),
        ({"langgraph.json": "{}"}, ".", "langgraph.json names no graphs; write for example"),
        ({"langgraph.json": langgraph_json({"a": 1})}, ".", "graph 'a' has to be \"./path/file.py:variable\", or an"),
        ({"langgraph.json": langgraph_json({"a": "./a.ts:graph"})}, ".", "graph 'a' is JavaScript (./a.ts:graph)"),
        (
            {"langgraph.json": langgraph_json({"a": "./a.py"})},
            ".",
            "write ./path/file.py:variable or package.module:var",
        ),
        (
            {"langgraph.json": langgraph_json({"a": "./a.py:graph"})},
            ".",
            "graph 'a': target 'a.py:graph': there is no file",
        ),
        (
            {"langgraph.json": langgraph_json({"a": "./a.py:x"}, dependencies=["./libs"])},
            ".",
            "langgraph.json: the folder './libs' of `dependencies` does not exist",
        ),
        (
            {
                "langgraph.json": langgraph_json({"a": "./a.py:x"}, dependencies=["no-such-bees>=1"]),
                "a.py": "import no_such_bees",
            },
            ".",
            "target 'a.py:x' needs the package 'no_such_bees': pip install no_such_bees (a.py:1); packages of "
            "`dependencies` that are not installed: pip install no-such-bees",
        ),
        ({"langgraph.json": langgraph_json({"a": "./a.py:x"})}, "langgraph.json:b", "has no graph 'b'; it has: a"),
    ],
)
def test_invalid_project_is_reported_with_a_fix(files: dict[str, str], target: str, message: str) -> None:
    write(files)
    assert message in error_of(target)


@pytest.mark.requirement("import-errors")
@pytest.mark.parametrize(
    ("files", "target", "message"),
    [
        ({"bot.py": "\nx = 1 +"}, "bot.py", "cannot be imported: SyntaxError: invalid syntax (bot.py:2)"),
        ({"bot.py": "import sys\nsys.exit(3)"}, "bot.py", "cannot be imported: it called sys.exit(3) (bot.py:2)"),
        (
            {"bot.py": "import parts", "parts.py": "\n1 / 0"},
            "bot.py",
            "ZeroDivisionError: division by zero (parts.py:2)",
        ),
        (
            {"bot.py": "from .parts import x"},
            "bot.py",
            "because its folder has no __init__.py: create one, or import without the dots (bot.py:1)",
        ),
        (
            {"my_bees/__init__.py": "", "my_bees/bot.py": "import my_bees.wasps"},
            "my_bees/bot.py",
            "cannot be imported: the package 'my_bees' has no module 'my_bees.wasps' (my_bees/bot.py:1)",
        ),
        (
            {"bot.py": "import my_bees", "deep/er/my_bees/__init__.py": ""},
            "bot.py",
            "the package 'my_bees' is in deep/er, which is not on the import path (bot.py:1): start Limelight in that",
        ),
        (
            {
                "bot.py": "import bee_search",
                "pyproject.toml": '[project]\ndependencies = ["bee-search>=1", "bee-cli[x]"]',
            },
            "bot.py",
            "needs the package 'bee_search': pip install bee-search bee-cli[x] (bot.py:1)",
        ),
        (
            {"deep/my_bees/bot.py": "x = 1"},
            "my_bees.bot:agent",
            "there is no module 'my_bees' here, but one in deep; write",
        ),
    ],
)
def test_import_error_names_its_cause_with_file_and_line(files: dict[str, str], target: str, message: str) -> None:
    write(files)
    assert message in error_of(target)


async def test_own_package_that_is_not_installed_is_found_from_a_file_and_from_a_module() -> None:
    write({**LAYOUTS["src package with relative imports"], "langgraph.json": "{}"})
    for target in ("src/my_bees/graph.py:graph", "my_bees.graph:graph"):
        async with serving_project(target) as served:
            assert await answer(served, "graph") == "dance"


def test_packages_of_the_same_name_are_refused() -> None:
    bot = "async def agent(messages, ctx):\n    yield 'x'\n"
    write({"a/my_bees/__init__.py": "", "a/my_bees/bot.py": bot, "b/my_bees/__init__.py": "", "b/my_bees/bot.py": bot})
    message = error_of("a/my_bees/bot.py:agent", "b/my_bees/bot.py:agent")
    assert (
        "target 'b/my_bees/bot.py:agent': the name of its package, 'my_bees', is taken by a/my_bees/bot.py" in message
    )


def test_targets_with_the_same_variable_name_get_distinct_names() -> None:
    bot = "async def agent(messages, ctx):\n    yield 'x'\n"
    write({"a/bot.py": bot, "b/bot.py": bot, "cook.py": bot, "dog.py": bot.replace("agent", "dog")})
    assert [agent.name for agent in resolved("a/bot.py:agent", "b/bot.py:agent", "cook.py", "dog.py:dog").agents] == [
        "a-bot-agent",
        "b-bot-agent",
        "cook-agent",
        "dog",
    ]
    for folder in ("one", "two"):
        write(
            {
                f"{folder}/langgraph.json": langgraph_json({"agent": f"./{folder}.py:agent"}),
                f"{folder}/{folder}.py": bot,
            }
        )
    agents = resolved("one", "two").agents
    assert [(agent.name, agent.title) for agent in agents] == [("one-agent", "one-agent"), ("two-agent", "two-agent")]
