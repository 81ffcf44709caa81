"""What earlier systems of this kind got wrong in watching agents, and the tests that hold it right here.

Each case is told in plain words. What stands after `::` is a test, or what a scenario that all frameworks play expects.
"""

import ast
from functools import lru_cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent

CASES: dict[str, tuple[str, ...]] = {
    "two sub-agents that run at once and end out of order: the depth never comes back, and the answer is lost": (
        "conformance.py::parallel_sub_agents",
        "agno/test_translator.py::test_two_delegations_that_end_out_of_order",
        "smolagents/test_translator.py::test_agents_at_once_are_told_apart",
        "langgraph/test_approvals.py::test_two_helpers_wait_at_once_and_each_gets_its_own_answer",
    ),
    "a sub-agent is called `task`, and what its tools return is never seen": ("conformance.py::sub_agent",),
    "agents that are managed, and tools that code calls, are invisible": (
        "conformance.py::sub_agent",
        "conformance.py::code",
        "smolagents/test_executor.py::test_helpers_that_code_calls_are_under_their_calls",
    ),
    "results are Python's text of a ToolMessage or a Command, and end at the first apostrophe": (
        "langgraph/test_tool_results.py::test_messages_and_commands_are_their_content",
        "test_unusual_results.py::test_a_result_is_the_text_that_the_tool_returned",
    ),
    "a result that contains the word error or failed counts as an error": (
        "test_unusual_results.py::test_a_result_is_the_text_that_the_tool_returned",
    ),
    "a tool that raises leaves its call open, and the stream without an end": (
        "conformance.py::tool_error",
        "langgraph/test_failures.py::test_a_helpers_tool_that_raises_closes_all_around_it",
    ),
    "a failed call is shown without its arguments": ("conformance.py::tool_error",),
    "arguments are not shown, or only of the first of several calls": (
        "conformance.py::one_tool",
        "conformance.py::parallel_tools",
        "conformance.py::fifty_tools",
    ),
    "several calls at once are taken for one": ("conformance.py::parallel_tools", "conformance.py::fifty_tools"),
    "calls of one reply, or of several runs, have one id": (
        "langgraph/test_messages.py::test_calls_of_one_reply_with_one_id",
        "agno/test_translator.py::test_ids_that_come_again_are_told_apart",
        "smolagents/test_translator.py::test_ids_that_repeat_are_made_unique",
    ),
    "a call of an unknown tool, or with arguments that are no JSON, is never told": (
        "conformance.py::unknown_tool",
        "conformance.py::malformed_args",
        "agno/test_translator.py::test_a_refused_call_is_told_in_its_step",
    ),
    "an answer appears twice: as it is streamed, and again with the end of the run": (
        "conformance.py::text",
        "test_unusual_results.py::test_what_a_model_says_is_whole_and_said_once",
        "agno/test_translator.py::test_text_is_told_in_messages_and_the_answer_repeats_the_last",
        "langgraph/test_messages.py::test_an_object_that_the_model_writes_is_not_told_twice",
    ),
    "an answer that was never streamed is lost": (
        "agno/test_translator.py::test_an_answer_that_was_never_streamed_has_no_message",
        "langgraph/test_translator.py::test_an_answer_that_nobody_has_streamed",
    ),
    "a stream of the model that is cut counts as a success, an error of the model as silence": (
        "conformance.py::cut_stream",
        "conformance.py::model_error",
        "test_unusual_results.py::test_any_fault_of_a_model",
    ),
    "long results are cut for good": (
        "conformance.py::big_result",
        "smolagents/test_tool_calls.py::test_a_huge_result_is_kept_whole",
    ),
    "long thoughts are cut for good": ("test_unusual_results.py::test_what_a_model_says_is_whole_and_said_once",),
    "pictures are paths on the server that nobody can open": (
        "smolagents/test_tool_calls.py::test_files_and_pictures_are_artifacts_of_their_call",
        "langgraph/test_tool_results.py::test_pictures_are_files",
        "test_files.py::test_a_medium_of_agno_that_lies_on_the_disk_is_read_in_a_thread",
    ),
    "an agent that blocks holds up the whole server, pings and other sessions too": (
        "test_unusual_results.py::test_a_tool_that_blocks_holds_nobody_else_up",
        "smolagents/test_cancellation.py::test_one_agents_tool_holds_nobody_else_up",
    ),
    "Stop does not exist, or reaches only the stream": (
        "conformance.py::stopped_in_a_tool",
        "smolagents/test_cancellation.py::test_stop_while_a_managed_agent_talks",
        "test_running_threads.py::test_stop_names_the_tool_that_goes_on_and_only_that",
    ),
    "a turn that was broken off spoils the next one": (
        "langgraph/test_failures.py::test_what_is_kept_after_a_stop",
        "agno/test_cancellation.py::test_after_stop_the_next_turn_works",
        "smolagents/test_conversation.py::test_after_a_stop_the_next_turn_works",
    ),
    "a conversation forgets its state, or shares it with others": (
        "langgraph/test_scenarios.py::test_a_session_goes_on_and_others_know_nothing_of_it",
        "agno/test_history.py::test_a_session_goes_on_and_others_know_nothing_of_it",
        "smolagents/test_conversation.py::test_conversations_share_nothing",
    ),
    "who asks is not passed on to the agent": ("agno/test_scenarios.py::test_tools_know_who_asks",),
    "pictures of the user are refused": (
        "langgraph/test_scenarios.py::test_files_of_the_question_reach_the_model",
        "agno/test_scenarios.py::test_images_reach_the_model",
        "smolagents/test_prompts.py::test_a_picture_reaches_the_model_and_is_no_artifact",
    ),
    "a tool that must be confirmed runs without being asked for": (
        "conformance.py::approval",
        "conformance.py::approval_rejected",
    ),
    "a member that fails is reported as a success": (
        "agno/test_scenarios.py::test_a_member_that_fails_leaves_the_team_alive",
    ),
    "plans are labelled as thoughts, and thoughts as plans": (
        "conformance.py::plan",
        "smolagents/test_translator.py::test_a_plan_is_a_plan_and_no_thought",
    ),
    "with a planning interval the answer gets lost": ("conformance.py::plan",),
    "at the limit of steps the last one is told twice": (
        "smolagents/test_final_answer.py::test_at_the_limit_the_answer_is_kept_and_no_step_is_told_twice",
    ),
    "an answer that a check rejects counts as final": (
        "smolagents/test_final_answer.py::test_an_answer_that_a_check_rejects_is_not_final",
        "smolagents/test_final_answer.py::test_an_answer_beside_another_tool_is_not_final",
    ),
    "the agent behind the server is told something else than without it": (
        "langgraph/test_scenarios.py::test_the_model_gets_the_same_with_and_without_limelight",
        "agno/test_scenarios.py::test_the_model_gets_what_it_gets_without_us",
        "smolagents/test_prompts.py::test_the_model_gets_the_same_with_and_without_us",
    ),
}


@lru_cache
def functions_in(file: str) -> frozenset[str]:
    tree = ast.parse((HERE / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("case", CASES)
def test_every_case_names_tests_that_exist(case: str) -> None:
    assert CASES[case]
    for test in CASES[case]:
        file, _, name = test.partition("::")
        assert name in functions_in(file), f"{test} is gone: name the test that holds this case now"
