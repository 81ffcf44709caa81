"""The live view, where the golden pictures do not reach: what markdown would swallow."""

from io import StringIO

import pytest
from rich.console import Console

from limelight.cli.view.live import Prose


@pytest.mark.parametrize(
    "text", ["Use vector<int> x and List<String>.", "<think>hm</think>", "`a<b>` & <c>", "<div>\n\na\n\n</div>"]
)
def test_angle_brackets_are_text(text: str) -> None:
    screen = StringIO()
    Console(file=screen, width=80).print(Prose(text))
    assert [c for c in screen.getvalue() if c in "<>"] == [c for c in text if c in "<>"]
