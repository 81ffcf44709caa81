"""Shared bookkeeping of messages: what opens a message, and what ends it."""

from limelight.events import ReasoningDelta, ReasoningFinished, TextDelta, TextFinished
from limelight.sources.messages import AgentMessages, MessageIds


def test_first_piece_opens_a_text_and_close_ends_it() -> None:
    messages = AgentMessages("helper-1", MessageIds())
    assert messages.text("") == [] and messages.append("x") is None
    assert messages.text("One") == [TextDelta(agent_id="helper-1", message_id="msg-1", text="One")]
    assert messages.append(" two") == TextDelta(agent_id="helper-1", message_id="msg-1", text=" two")
    assert messages.append("") is None
    assert messages.close() == [TextFinished(agent_id="helper-1", message_id="msg-1")]
    assert messages.close() == []
    assert (messages.last_id, messages.last_text) == ("msg-1", "One two")


def test_text_ends_the_reasoning_and_reasoning_ends_the_text() -> None:
    messages = AgentMessages("", MessageIds(text="answer", reasoning="thought"))
    assert messages.reasoning("Hm") == [ReasoningDelta(message_id="thought-1", text="Hm")]
    assert messages.reasoning(".") == [ReasoningDelta(message_id="thought-1", text=".")]
    assert messages.text("Yes") == [
        ReasoningFinished(message_id="thought-1"),
        TextDelta(message_id="answer-2", text="Yes"),
    ]
    assert messages.reasoning("Or") == [
        TextFinished(message_id="answer-2"),
        ReasoningDelta(message_id="thought-3", text="Or"),
    ]
    assert messages.append("no") is None


def test_agents_of_a_run_share_the_counter_of_ids() -> None:
    ids = MessageIds()
    first, second = AgentMessages("a", ids), AgentMessages("b", ids)
    events = [*first.text("x"), *second.text("y"), *first.text("z")]
    assert [event.message_id for event in events if isinstance(event, TextDelta)] == ["msg-1", "msg-2", "msg-1"]
