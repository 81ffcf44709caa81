"""docs/client.md: its snippets run, and its tables name all methods, arguments and errors."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from limelight.builtin.demo.agent import demo
from limelight.client import Client, ClientError, Socket, errors
from tests.client.server_thread import serve_in_thread
from tests.support import agents
from tests.support.markdown import blocks, codes, rows, sections

TEXT = (Path(__file__).parents[2] / "docs" / "client.md").read_text()
SNIPPETS = blocks(TEXT, "python")


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A server for each of the two agents that the snippets need."""
    folder = tmp_path_factory.mktemp("servers")
    with (
        serve_in_thread(demo, data=folder / "demo") as served,
        serve_in_thread(agents.asker, data=folder / "asker") as asking,
    ):
        yield {"demo": served.url, "asker": asking.url}


@pytest.mark.requirement("client-examples")
@pytest.mark.parametrize("number", range(len(SNIPPETS)))
def test_snippet_runs(
    number: int,
    urls: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = SNIPPETS[number]
    monkeypatch.setenv("LIMELIGHT_URL", urls["asker" if "ApprovalRequested" in code else "demo"])
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "docs/client.md", "exec"), {"__name__": "__main__"})
    output = capsys.readouterr()
    assert output.err == ""
    assert len(output.out.splitlines()) >= 2, output.out
    for file in tmp_path.glob("*.jsonl"):
        assert file.read_text().count("\n") > 50


def test_tables_list_every_method_with_its_arguments() -> None:
    listed = methods_in("Methods")
    listed["ask"] = ["text", *listed["start"][1:]]
    assert listed == methods_of(Client)
    assert methods_in("Sockets") == methods_of(Socket)


def methods_in(section: str) -> dict[str, list[str]]:
    found = re.findall(r"`(\w+)\(([^)]*)\)`", "".join(row[0] for row in rows(sections(TEXT, 2)[section])))
    return {name: [word.strip() for word in arguments.split(",") if word.strip()] for name, arguments in found}


def methods_of(class_: type) -> dict[str, list[str]]:
    found = inspect.getmembers(class_, inspect.isfunction)
    real = {name: list(inspect.signature(f).parameters)[1:] for name, f in found if not name.startswith("_")}
    del real["aclose"]
    return real


def test_tables_list_every_client_argument_and_error() -> None:
    arguments = {name for row in rows(sections(TEXT, 2)["Constructor arguments"]) for name in codes(row[0])}
    assert arguments == set(inspect.signature(Client).parameters)
    classes = {
        name
        for name, class_ in inspect.getmembers(errors, inspect.isclass)
        if issubclass(class_, ClientError) and class_ is not ClientError
    }
    assert {next(iter(codes(row[0]))) for row in rows(sections(TEXT, 2)["Errors"])} == classes
