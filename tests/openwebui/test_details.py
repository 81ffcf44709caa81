"""The display for old versions, where it cannot be told by the goldens: calls that never ended."""

from tests.openwebui.display_frames import Shown


def test_calls_that_were_running_at_the_end_are_there_as_interrupted() -> None:
    shown = Shown("details")
    for tool_id, name in (("1", "quick"), ("2", "slow")):
        shown.feed("tool_start", tool_id=tool_id, name=name, args={"n": 1}, agent_depth=0)
    shown.feed("tool_output", tool_id="2", stream="stdout", content="halfway\n")
    shown.feed("tool_end", tool_id="1", name="quick", result="done", agent_depth=0)
    shown.close()
    assert shown.text.count("<details") == shown.text.count("</details>") == 2
    assert 'name="slow" arguments="{&quot;n&quot;: 1}"' in shown.text
    assert "halfway\\n\\nError: interrupted" in shown.text
    assert shown.text.index('name="quick"') < shown.text.index('name="slow"')
