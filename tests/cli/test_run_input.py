"""`limelight run` with an input object and context: options, questions at the terminal, and errors."""

import json
from pathlib import Path
from typing import Any

import pytest

from limelight.cli import run_input
from limelight.cli.run_input import RunArguments
from limelight.client.models import AgentInfo
from limelight.errors import SetupError
from tests.cli.runner import USAGE_ERROR, limelight

VALUES = '{"topic": "bees", "audience": "all"}'


@pytest.fixture
def report(tmp_path: Path) -> Path:
    (tmp_path / "graphs.py").write_text(
        "from tests.sources.langgraph import input_graphs\n"
        "report = input_graphs.typed_dict_input()\n"
        "trip = input_graphs.pydantic_input()\n"
        "persona = input_graphs.with_dataclass_context()\n"
    )
    return tmp_path


@pytest.fixture
def at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_input, "is_interactive", lambda: True)


@pytest.mark.requirement("graph-input")
def test_input_option_takes_the_place_of_the_question(report: Path) -> None:
    result = limelight("run", "--input", VALUES, "--target", "graphs.py:report", folder=report)
    assert result.stdout.startswith("● report: topic: bees audience: all\n\nbees for all, any length\n")


def test_input_is_read_from_standard_input(report: Path) -> None:
    result = limelight(
        "run", "--input", "-", "--target", "graphs.py:report", "--plain", folder=report, stdin=VALUES.encode()
    )
    assert "bees for all, any length" in result.stdout


def test_question_and_input_are_shown_together(report: Path) -> None:
    result = limelight("run", "ants", "--input", '{"audience": "all"}', "--target", "graphs.py:report", folder=report)
    assert result.stdout.startswith("● report: ants  audience: all\n\nants for all, any length\n")


def test_context_options_have_the_types_of_the_schema(report: Path) -> None:
    context = ("--context", "tone=calm = quiet", "--context", "language=de", "--context", "model=7")
    result = limelight("run", "hi", *context, "--target", "graphs.py:persona", folder=report)
    assert "calm = quiet de 7 local" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["hi", "--target", "graphs.py:report"], "agent 'report' needs --input '{\"audience\": …}'"),
        (
            ["--target", "graphs.py:trip"],
            "agent 'trip' needs --input '{\"person\": …, \"days\": …}'",
        ),
        (["--target", "graphs.py:report"], "agent 'report' needs a question and --input '{\"audience\": …}'"),
        (
            ["hi", "--target", "graphs.py:persona", "--context", "tone=calm"],
            "agent 'persona' needs --context language=…",
        ),
        (["--agent", "demo"], "agent 'demo' needs a question"),
    ],
)
def test_missing_values_are_named_with_their_options(report: Path, arguments: list[str], message: str) -> None:
    result = limelight("run", "--plain", *arguments, folder=report, code=USAGE_ERROR)
    assert result.stderr == f"limelight: {message}\n"


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--input", "{", "this is not valid JSON"),
        ("--input", "[1]", "expected a JSON object"),
        ("--context", "tone", "expected KEY=VALUE, not 'tone'"),
        ("--context", "=x", "expected KEY=VALUE, not '=x'"),
    ],
)
def test_options_that_cannot_be_parsed_are_usage_errors(tmp_path: Path, option: str, value: str, message: str) -> None:
    result = limelight("run", "hi", option, value, folder=tmp_path, code=USAGE_ERROR)
    assert message in " ".join(result.stderr.split())


def test_value_of_the_wrong_type_is_refused_by_the_server(report: Path) -> None:
    result = limelight(
        "run",
        "--input",
        '{"topic": 1, "audience": "x"}',
        "--target",
        "graphs.py:report",
        folder=report,
        code=USAGE_ERROR,
    )
    assert result.stderr == "limelight: input.topic: expected a text, got 1\n"


@pytest.mark.usefixtures("at_a_terminal")
def test_missing_values_are_asked_for_at_a_terminal(report: Path) -> None:
    answers = "bees\nall\n"
    result = limelight("run", "--plain", "--target", "graphs.py:report", folder=report, stdin=answers.encode())
    assert "Question:" in result.stderr and "audience (a text):" in result.stderr
    assert "bees for all, any length" in result.stdout


@pytest.mark.usefixtures("at_a_terminal")
def test_wrong_answers_are_asked_again(report: Path) -> None:
    person = json.dumps({"name": "Ada", "born": "1815-12-10"})
    answers = f"Ada\n{person}\n31\n3\n\n\n"
    result = limelight("run", "--plain", "--target", "graphs.py:trip", folder=report, stdin=answers.encode())
    assert 'expected an object, got "Ada"' in result.stderr
    assert "expected a number of at most 30, got 31" in result.stderr
    assert "Who travels" in result.stderr
    assert "Ada (1815) spends 3 days in nowhere" in result.stdout


@pytest.mark.usefixtures("at_a_terminal")
def test_missing_context_is_asked_for_at_a_terminal(report: Path) -> None:
    result = limelight("run", "hi", "--plain", "--target", "graphs.py:persona", folder=report, stdin=b"calm\nfr\nde\n")
    assert 'language (one of "en", "de"):' in result.stderr
    assert 'expected one of "en", "de", got "fr"' in result.stderr
    assert "calm de small local" in result.stdout


CONTEXT: dict[str, Any] = {"properties": {"tone": {"type": "string"}}, "required": ["tone"]}
REQUIRED: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
FORM = AgentInfo(name="x", default=True, input_schema=REQUIRED, question_key="q")


def test_session_that_continues_is_not_asked_for_required_values() -> None:
    arguments = RunArguments("go", None, {})
    arguments.complete([FORM], None, is_new=False)
    assert (arguments.question, arguments.values) == ("go", None)


def test_json_question_is_left_to_the_server() -> None:
    RunArguments('{"a": "x"}', None, {}).complete([FORM], None, is_new=True)


def test_context_that_requests_may_not_set_is_not_asked_for() -> None:
    closed = AgentInfo(name="x", default=True, context_schema=CONTEXT)
    RunArguments("go", None, {}).complete([closed], None, is_new=True)
    partly_open = AgentInfo(name="x", context_schema=CONTEXT, context_from_request=("tone",))
    with pytest.raises(SetupError, match="--context tone"):
        RunArguments("go", None, {}).complete([partly_open], "x", is_new=True)
