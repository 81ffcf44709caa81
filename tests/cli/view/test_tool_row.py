"""A call as a row: what is kept and what is cut when the screen is narrow."""

from limelight.cli.view.state import Call
from limelight.cli.view.tool_row import call_line, call_rows


def call(path: str, error: str = "", name: str = "read_file") -> Call:
    return Call("1", "", name, {"path": path}, "failed" if error else "done", 1500, error)


def test_a_row_that_fits_is_a_line() -> None:
    assert call_rows(call("bees.md"), "", 40) == [call_line(call("bees.md"))] == ["✓ read_file bees.md  1.5 s"]


def test_of_a_row_that_is_too_long_the_argument_is_cut() -> None:
    long = "a/long/way/to/bees.md"
    assert call_rows(call(long), "", 30) == ["✓ read_file a/long/way…  1.5 s"]
    assert call_rows(call(long, "not there"), "", 45) == ["✗ read_file a/long/way/to/…  not there  1.5 s"]
    assert call_rows(call(long), "ann: ", 30) == ["✓ ann: read_file a/lon…  1.5 s"]


def test_an_error_that_does_not_fit_has_a_line_of_its_own() -> None:
    error = "there is no such file, and there never was one"
    rows = call_rows(call("a/long/way/to/bees.md", error), "", 40)
    assert rows == ["✗ read_file a/long/way/to/bees.md  1.5 s", error]
    assert call_line(call("bees.md", error)) == f"✗ read_file bees.md  {error}  1.5 s"


def test_a_call_whose_result_was_not_seen_has_a_mark_of_its_own() -> None:
    unseen = Call("1", "", "send_mail", {"to": "ann"}, "unseen")
    assert call_line(unseen) == "○ send_mail ann  no result seen"
    assert call_rows(unseen, "", 24) == ["○ send_mail ann", "no result seen"]


def test_the_duration_is_always_there() -> None:
    assert call_rows(call("x", name="n" * 50), "", 30) == [f"✓ {'n' * 20}…  1.5 s"]
    assert call_rows(call("蜜蜂" * 20), "", 30) == ["✓ read_file 蜜蜂蜜蜂蜜…  1.5 s"]
