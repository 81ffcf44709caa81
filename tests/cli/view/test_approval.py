"""Questions in lines: which argument is which, what was changed, and a graph's question in its own words."""

from typing import Any

import pytest

from limelight.cli.approvals.queue import Waiting, how_to_decide
from limelight.cli.view.approval import asked_lines, changes
from limelight.cli.view.arguments import change_lines
from limelight.cli.view.prompt import Question
from limelight.cli.view.state import Asked
from limelight.cli.view.subject import subject_of
from limelight.events import ApprovalRequested

LONG = "Is this right?\n" + "A line of the report.\n" * 4
MAIL = {"to": "ann", "text": "one\ntwo"}


def asked(name: str, args: dict[str, Any], **more: Any) -> Asked:
    return Asked("apr_1", "", "", name, args, **more)


def test_an_open_question_says_which_argument_is_which() -> None:
    assert asked_lines(asked("send_mail", MAIL)) == [
        "? send_mail needs an approval (apr_1)",
        "    to = ann",
        "    text =",
        "      one",
        "      two",
    ]
    assert asked_lines(asked("send_mail", MAIL), named=False) == ["? needs an approval (apr_1)"]
    assert asked_lines(asked("send_mail", {"n": "x" * 500}))[-1] == "    …"


def test_after_an_edit_it_says_what_was_changed() -> None:
    edited = {"to": "bob", "text": "one\ntwo", "cc": "eve"}
    assert asked_lines(asked("send_mail", MAIL, decision="edit", by="ada", edited=edited)) == [
        "✓ send_mail approved with changes by ada",
        "    to = bob  (was ann)",
        "    cc = eve  (new)",
    ]
    assert change_lines({"a": "", "b": 1}, {"a": 2}) == ["a = 2  (was empty)", "b is left out"]
    assert change_lines('{"a', {"a": 2}) == change_lines({}, '{"a') == change_lines({}, None) == []


@pytest.mark.parametrize(
    ("args", "title", "rest"),
    [
        ({"value": "Really send it?"}, "Really send it?", {}),
        ({"question": "Send?", "to": "ann"}, "Send?", {"to": "ann"}),
        ({"to": "ann", "message": " Send it? "}, "Send it?", {"to": "ann"}),
        ({"value": LONG}, LONG.replace("\n", " ")[:79] + "…", {"value": LONG}),
    ],
)
def test_a_graph_asks_in_its_own_words(args: dict[str, Any], title: str, rest: dict[str, Any]) -> None:
    assert subject_of("interrupt", args) == (title, rest, True)


def test_a_graph_without_words_and_a_tool_have_a_name() -> None:
    assert subject_of("interrupt", {"value": 42}) == ("interrupt", {"value": 42}, False)
    assert subject_of("send", {"question": "Send?"}) == ("send", {"question": "Send?"}, False)
    assert subject_of("interrupt", '{"value": "cu') == ("interrupt", '{"value": "cu', False)


def test_own_words_everywhere() -> None:
    args = {"question": "Which town?", "country": "France"}
    request = ApprovalRequested(approval_id="apr_1", name="interrupt", args=args)
    lines = [line.plain for line in Question(request, "guide").draw(60, 30, 0)]
    assert lines[:2] == ["┃ guide asks: Which town?", "┃   country = France"]
    narrow = [line.plain for line in Question(request, "guide").draw(24, 30, 0)]
    assert "[s]how all" in narrow[-2]
    assert asked_lines(asked("interrupt", args), named=False) == [
        '? "Which town?" waits for an answer (apr_1)',
        "    country = France",
    ]
    answered = asked("interrupt", args, decision="edit", by="ada", edited={"value": "Lyon"})
    assert asked_lines(answered) == ['✓ "Which town?" answered by ada', "    value = Lyon"]
    assert asked_lines(asked("interrupt", args, decision="approve", by="ada")) == ['✓ "Which town?" approved by ada']
    assert changes("interrupt", args, {**args, "country": "Peru"}) == ["country = Peru  (was France)"]
    assert how_to_decide("http://x", Waiting("run_1", request)).startswith('"Which town?" waits for a decision: ')
