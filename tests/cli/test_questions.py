# pyright: reportDeprecated=false, reportUnknownLambdaType=false, reportArgumentType=false, reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
"""Questions of agents in a terminal and without one: `approve --answer`, `run --approve all`, and the dialogue."""

import asyncio
import warnings
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict, cast

import pytest
from langgraph.errors import NodeInterrupt
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt
from rich.text import Text

from limelight.cli.approval_dialogue import MAX_IDENTICAL, ApprovalDialogue
from limelight.cli.view.approval_prompt import ApprovalPrompt
from limelight.client import Client, SyncClient
from limelight.events import ApprovalRequested
from tests.cli.runner import limelight
from tests.client.server_thread import serve_in_thread
from tests.support.server import offer

TRIP = {
    "type": "object",
    "properties": {
        "town": {"enum": ["Lyon", "Paris"], "description": "Where?"},
        "days": {"type": "integer"},
        "note": {"type": "string"},
    },
    "required": ["town", "days"],
}


class State(TypedDict):
    question: str
    answer: str


def graph_of(node: Any) -> Any:
    return StateGraph(State).add_node("ask", node).add_edge(START, "ask").compile()


def ask_colour(state: State) -> dict[str, str]:
    return {"answer": repr(interrupt({"question": "Which colour?", "options": ["red", "blue"]}))}


def ask_trip(state: State) -> dict[str, str]:
    return {"answer": repr(interrupt("Where to?", response_schema=TRIP))}


def raise_again(state: State) -> dict[str, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NodeInterrupt is deprecated
        raise NodeInterrupt("The input is too long")


def edit_only(state: State) -> dict[str, str]:
    config = {"allow_accept": False, "allow_edit": True, "allow_ignore": False, "allow_respond": False}
    request = {"action_request": {"action": "send_mail", "args": {"to": "ann"}}, "config": config}
    return {"answer": repr(interrupt([request]))}


def looping() -> Any:
    """A graph that asks the same question in each round, for ever."""
    builder = StateGraph(State).add_node("ask", lambda _: {"answer": str(interrupt("Continue?"))})
    builder.add_edge(START, "ask")
    builder.add_conditional_edges("ask", lambda _: "ask", ["ask", END])
    return builder.compile()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    graphs = {
        "colour": graph_of(ask_colour),
        "trip": graph_of(ask_trip),
        "again": graph_of(raise_again),
        "edit": graph_of(edit_only),
        "looping": looping(),
    }
    agents = [offer(graph, name) for name, graph in graphs.items()]
    with serve_in_thread(agents=agents, data=tmp_path_factory.mktemp("server")) as served:
        yield served.url


def waiting(client: SyncClient, agent: str) -> str:
    run = client.start("go", agent=agent)
    next(record for record in run if isinstance(record.event, ApprovalRequested))
    return run.run_id


@pytest.mark.requirement("questions-in-their-form")
@pytest.mark.parametrize(
    ("agent", "typed", "shown", "answer"),
    [
        ("colour", "blue", '"Which colour?" answered', "'blue'"),
        ("colour", "2", '"Which colour?" answered', "'blue'"),
        ("trip", '{"town": "Lyon", "days": 3}', '"Where to?" answered', "{'town': 'Lyon', 'days': 3}"),
    ],
)
def test_approve_with_an_answer(url: str, tmp_path: Path, agent: str, typed: str, shown: str, answer: str) -> None:
    with SyncClient(url) as client:
        run_id = waiting(client, agent)
        listed = limelight("approve", run_id, "--list", "--url", url, folder=tmp_path).stdout
        assert "answer)" in listed.splitlines()[0]
        assert ("  1 red\n  2 blue\n" in listed) is (agent == "colour")
        done = limelight("approve", run_id, "--answer", typed, "--url", url, folder=tmp_path).stdout
        assert done.startswith(shown)
        list(client.follow(run_id))
        assert client.answer(run_id) == answer


@pytest.mark.parametrize(
    ("agent", "typed", "problem"),
    [
        ("colour", "green", "--answer does not fit: the answer: expected one of red, blue"),
        ("trip", "Lyon", '--answer does not fit: the answer: expected an object, got "Lyon"'),
        ("edit", "yes", "send_mail is no question: it takes edit"),
    ],
)
def test_answer_that_does_not_fit_is_refused(url: str, tmp_path: Path, agent: str, typed: str, problem: str) -> None:
    with SyncClient(url) as client:
        run_id = waiting(client, agent)
        done = limelight("approve", run_id, "--answer", typed, "--url", url, folder=tmp_path, code=2)
        assert problem in done.stderr
        client.cancel(run_id)


# --approve all and none


def test_approve_all_ends_a_node_that_asks_for_ever(url: str, tmp_path: Path) -> None:
    done = limelight("run", "go", "--agent", "again", "--approve", "all", "--url", url, folder=tmp_path, code=1)
    assert "the node 'ask' of this graph has asked the same question 4 times" in done.stdout + done.stderr


def test_approve_all_stops_a_graph_that_asks_the_same_in_each_round(url: str, tmp_path: Path) -> None:
    done = limelight("run", "go", "--agent", "looping", "--approve", "all", "--url", url, folder=tmp_path, code=3)
    assert f'"Continue?" has asked the same {MAX_IDENTICAL} times, so the run is stopped.' in done.stderr


def test_approve_all_sends_unchanged_arguments_where_only_an_edit_is_allowed(url: str, tmp_path: Path) -> None:
    done = limelight("run", "go", "--agent", "edit", "--approve", "all", "--url", url, folder=tmp_path)
    assert "'type': 'edit'" in done.stdout and "'to': 'ann'" in done.stdout


def test_approve_none_stops_a_run_that_cannot_be_rejected(url: str, tmp_path: Path) -> None:
    done = limelight("run", "go", "--agent", "edit", "--approve", "none", "--url", url, folder=tmp_path, code=3)
    assert "send_mail cannot be rejected, so the run is stopped." in done.stderr


def test_approve_all_rejects_what_only_a_person_can_answer(url: str, tmp_path: Path) -> None:
    done = limelight("run", "go", "--agent", "trip", "--approve", "all", "--url", url, folder=tmp_path)
    assert '"Where to?" needs an answer of a person and is rejected.' in done.stderr
    assert "False" in done.stdout


# The dialogue


class FakeKeyboard:
    """Types lines, each followed by Enter; Escape is a line of its own."""

    def __init__(self, *lines: str) -> None:
        self._keys = [line if line == "\x1b" else f"{line}\r" for line in lines]

    async def read(self) -> str:
        assert self._keys, "the dialogue reads more than was typed"
        return self._keys.pop(0)


class FakeView:
    def __init__(self, prompt: ApprovalPrompt) -> None:
        self._prompt = prompt
        self.screens: list[str] = []

    def refresh(self) -> None:
        self.screens.append("\n".join(line.plain for line in self._prompt.draw(100, 20, 0)))

    def print(self, *lines: Text) -> None:
        self.screens += [line.plain for line in lines]

    @contextmanager
    def suspended(self) -> Generator[None]:
        yield


class FakeClient:
    def __init__(self) -> None:
        self.decisions: list[tuple[Any, ...]] = []

    async def respond(self, *decision: Any) -> str:
        self.decisions.append(("respond", *decision[2:]))
        return "respond"

    async def approve(self, *decision: Any) -> str:
        self.decisions.append(("approve",))
        return "approve"


async def dialogue(request: ApprovalRequested, *lines: str) -> tuple[list[tuple[Any, ...]], str]:
    """Type lines into the dialogue about a request. Returns the decisions, and all screens as one text."""
    prompt, client = ApprovalPrompt(request, "agent"), FakeClient()
    view = FakeView(prompt)
    talk = ApprovalDialogue(
        cast("Client", client), cast("Any", view), "run_1", prompt, cast("Any", FakeKeyboard(*lines))
    )
    await asyncio.wait_for(talk.decide(), 10)
    return client.decisions, "\n".join(view.screens)


def question(schema: dict[str, Any], text: str = "Where to?", **more: Any) -> ApprovalRequested:
    args = {"value": text}
    return ApprovalRequested(
        approval_id="apr_1", name="interrupt", args=args, question=text, answer_schema=schema, **more
    )


@pytest.mark.requirement("questions-in-their-form")
@pytest.mark.parametrize(
    ("schema", "lines", "answer"),
    [
        ({}, ("t", "to Lyon"), "to Lyon"),
        ({"enum": ["Lyon", "Paris"]}, ("t", "2"), "Paris"),
        ({"enum": ["Lyon", "Paris"]}, ("type", "Rome", "\x1b", "t", "lyon"), "Lyon"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, ("t", "2,a"), ["b", "a"]),
        (TRIP, ("t", "1", "3", ""), {"town": "Lyon", "days": 3}),
        (TRIP, ("t", "Paris", "\x1b", "t", "Paris", "2", "by train"), {"town": "Paris", "days": 2, "note": "by train"}),
    ],
)
async def test_dialogue_reads_the_answer(schema: dict[str, Any], lines: tuple[str, ...], answer: Any) -> None:
    decisions, shown = await dialogue(question(schema), *lines)
    assert decisions == [("respond", answer)]
    assert "agent asks: Where to?" in shown
    assert "[t]ype an answer  [a]pprove  [e]dit  [r]eject" in shown


async def test_dialogue_lists_choices_and_says_what_does_not_fit() -> None:
    schema = {"oneOf": [{"const": "l", "title": "Lyon", "description": "two hours"}, {"const": "p", "title": "Paris"}]}
    decisions, shown = await dialogue(question(schema), "t", "Rome", "\x1b", "a")
    assert decisions == [("approve",)]
    assert "1 Lyon: two hours" in shown and "2 Paris" in shown
    assert "The answer: expected one of Lyon, Paris." in shown


async def test_dialogue_shows_the_question_of_a_tool_and_the_hints_of_fields() -> None:
    request = ApprovalRequested(
        approval_id="apr_1",
        name="book",
        args={"town": ""},
        decisions=("edit", "reject"),
        question="Where to,\nand how long?",
        answer_schema=TRIP,
    )
    decisions, shown = await dialogue(request, "t", "1", "two", "\x1b", "t", "1", "2", "")
    assert decisions == [("respond", {"town": "Lyon", "days": 2})]
    assert "agent asks: book" in shown and "and how long?" in shown
    assert "town: Where?: 1 Lyon, 2 Paris. Enter: next; Esc: back." in shown
    assert "note (optional). Enter: next; Esc: back." in shown
    assert 'The answer: expected a whole number, got "two".' in shown
