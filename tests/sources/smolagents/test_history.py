"""smolagents: a history as steps of the agent's memory."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from limelight.messages import Message
from limelight.sources.image_budget import separate_lease
from limelight.sources.smolagents.history import steps_of
from tests.sources.smolagents.smolagents_scenarios import messages_of


def test_answer_becomes_a_final_answer_call() -> None:
    past = [Message(role="user", content="hi"), Message(role="assistant", content="Hello!")]
    task, call, result = messages_of(steps_of(past, None, separate_lease()))
    assert task == ("user", "New task:\nhi")
    assert "final_answer" in call[1] and "Hello!" in call[1]
    assert result == ("tool-response", "Observation:\nHello!")


def test_answer_of_a_code_agent_becomes_code() -> None:
    past = [Message(role="user", content="hi"), Message(role="assistant", content='It\'s "here".')]
    steps = messages_of(steps_of(past, ("<code>", "</code>"), separate_lease()))
    assert steps[1] == ("assistant", "<code>\nfinal_answer('It\\'s \"here\".')\n</code>")


def test_calls_of_code_are_left_out_beside_the_code() -> None:
    def called(name: str, arguments: str, call_id: str) -> list[Message]:
        call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        return [
            Message(role="assistant", content="", tool_calls=[call]),
            Message(role="tool", tool_call_id=call_id, content=f"{name} returned"),
        ]

    past = [
        Message(role="user", content="hi"),
        *called("python_interpreter", '{"code": "add(1, 2)"}', "c1"),
        *called("add", '{"a": 1, "b": 2}', "c2"),
    ]
    text = str(messages_of(steps_of(past, ("<code>", "</code>"), separate_lease())))
    assert "python_interpreter returned" in text and "add returned" not in text
    assert text.count("add(1, 2)") == 2  # as it was written, and as it was called


def test_malformed_history_is_converted_as_far_as_possible() -> None:
    past = [
        Message(role="tool", tool_call_id="unknown", content="lost"),
        Message(role="assistant", content=None, tool_calls=[{"function": {"name": "add", "arguments": "{broken"}}, 7]),
        Message(
            role="user",
            content=[
                {"type": "text", "text": "hi"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            ],
        ),
    ]
    steps = messages_of(steps_of(past, None, separate_lease()))
    assert "{broken" in steps[0][1] and "lost" not in str(steps)
    assert steps[1] == ("user", "New task:\nhi")


def test_code_with_the_answer_is_one_step_with_its_output() -> None:
    code = {"name": "python_interpreter", "arguments": '{"code": "print(1)\\nfinal_answer(\'done\')"}'}
    past = [
        Message(role="user", content="hi"),
        Message(role="assistant", content="", tool_calls=[{"id": "c1", "type": "function", "function": code}]),
        Message(role="tool", tool_call_id="c1", content="1"),
        Message(role="assistant", content="done"),
    ]
    steps = steps_of(past, ("<code>", "</code>"), separate_lease())
    assert len(steps) == 2
    assert (steps[1].is_final_answer, steps[1].action_output) == (True, "done")
    assert steps[1].observations == "Execution logs:\n1\nLast output from code snippet:\ndone"
