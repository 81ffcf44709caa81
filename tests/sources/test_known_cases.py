"""Known defects of earlier systems of this kind, and the tests that prevent them here.

The name after `::` is a test, or the expectation of a scenario.
"""

import ast
from functools import lru_cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent

CASES: dict[str, tuple[str, ...]] = {
    "two sub-agents that run at once and end out of order: the depth never comes back, and the answer is lost": (
        "conformance.py::parallel_sub_agents",
        "agno/test_translator.py::test_parallel_delegations_may_end_in_any_order",
        "smolagents/test_translator.py::test_events_of_parallel_agents_have_their_own_ids",
        "langgraph/test_approvals.py::test_two_sub_agents_wait_and_each_gets_its_own_decision",
    ),
    "a sub-agent is called `task`, and what its tools return is never seen": ("conformance.py::sub_agent",),
    "agents that are managed, and tools that code calls, are invisible": (
        "conformance.py::sub_agent",
        "conformance.py::code",
        "smolagents/test_executor.py::test_managed_agents_that_code_calls_belong_to_their_calls",
    ),
    "results are Python's text of a ToolMessage or a Command, and end at the first apostrophe": (
        "langgraph/test_tool_results.py::test_messages_and_commands_become_their_content",
        "test_unusual_results.py::test_result_is_the_returned_text",
    ),
    "a result that contains the word error or failed counts as an error": (
        "test_unusual_results.py::test_result_is_the_returned_text",
    ),
    "a tool that raises leaves its call open, and the stream without an end": (
        "conformance.py::tool_error",
        "langgraph/test_failures.py::test_tool_of_a_sub_agent_that_raises_closes_everything_around_it",
    ),
    "a failed call is shown without its arguments": ("conformance.py::tool_error",),
    "arguments are not shown, or only of the first of several calls": (
        "conformance.py::one_tool",
        "conformance.py::parallel_tools",
        "conformance.py::fifty_tools",
    ),
    "several calls at once are taken for one": ("conformance.py::parallel_tools", "conformance.py::fifty_tools"),
    "calls of one reply, or of several runs, have one id": (
        "langgraph/test_messages.py::test_calls_of_one_reply_with_one_id_become_unique",
        "agno/test_translator.py::test_repeated_call_ids_become_unique",
        "smolagents/test_translator.py::test_repeated_call_ids_become_unique",
    ),
    "a call of an unknown tool, or with arguments that are not JSON, is never shown": (
        "conformance.py::unknown_tool",
        "conformance.py::malformed_args",
        "agno/test_translator.py::test_rejected_call_is_shown_in_its_step",
    ),
    "an answer appears twice: in the stream, and again at the end of the run": (
        "conformance.py::text",
        "test_unusual_results.py::test_reply_is_shown_completely_and_once",
        "agno/test_translator.py::test_text_is_streamed_and_the_answer_names_the_last_message",
        "langgraph/test_messages.py::test_structured_response_as_text_names_its_message",
    ),
    "an answer that was never streamed is lost": (
        "agno/test_translator.py::test_answer_that_was_not_streamed_has_no_message",
        "langgraph/test_translator.py::test_answer_that_was_not_streamed_has_no_message_id",
    ),
    "a stream of the model that is cut counts as a success, an error of the model as silence": (
        "conformance.py::cut_stream",
        "conformance.py::model_error",
        "test_unusual_results.py::test_malformed_reply_of_a_model_ends_in_a_terminal_event",
    ),
    "long results are cut for good": (
        "conformance.py::big_result",
        "smolagents/test_tool_calls.py::test_huge_result_is_kept_complete",
    ),
    "long thoughts are cut for good": ("test_unusual_results.py::test_reply_is_shown_completely_and_once",),
    "images are paths on the server that a client cannot open": (
        "smolagents/test_tool_calls.py::test_files_and_images_in_a_result_are_artifacts_of_the_call",
        "langgraph/test_tool_results.py::test_image_blocks_become_files",
        "test_files.py::test_agno_medium_on_the_disk_is_read_in_a_thread",
    ),
    "an agent that blocks holds up the whole server, pings and other sessions too": (
        "test_unusual_results.py::test_blocking_tool_does_not_block_other_runs",
    ),
    "Stop does not exist, or reaches only the stream": (
        "conformance.py::stopped_in_a_tool",
        "smolagents/test_cancellation.py::test_stop_during_a_reply_of_a_managed_agent_ends_both_agents",
        "test_leftover_threads.py::test_stop_names_only_the_tool_that_still_runs",
    ),
    "a turn that was broken off spoils the next one": (
        "langgraph/test_failures.py::test_state_after_a_stop_has_a_result_for_every_call",
        "agno/test_cancellation.py::test_turn_after_a_stop_works",
        "smolagents/test_conversation.py::test_turn_after_a_stop_works",
    ),
    "a conversation forgets its state, or shares it with others": (
        "langgraph/test_scenarios.py::test_session_continues_and_other_sessions_are_isolated",
        "agno/test_history.py::test_session_continues_and_other_sessions_are_isolated",
        "smolagents/test_conversation.py::test_conversations_are_isolated",
    ),
    "who asks is not passed on to the agent": ("agno/test_scenarios.py::test_tools_get_the_user_and_the_session",),
    "pictures of the user are refused": (
        "langgraph/test_scenarios.py::test_sent_files_reach_the_model",
        "agno/test_scenarios.py::test_sent_images_reach_the_model",
        "smolagents/test_prompts.py::test_sent_image_reaches_the_model_and_is_not_an_artifact_of_the_agent",
    ),
    "a tool that must be confirmed runs without being asked for": (
        "conformance.py::approval",
        "conformance.py::approval_rejected",
    ),
    "a member that fails is reported as a success": (
        "agno/test_scenarios.py::test_team_continues_after_a_member_has_failed",
    ),
    "plans are labelled as thoughts, and thoughts as plans": (
        "conformance.py::plan",
        "smolagents/test_translator.py::test_planning_step_gives_a_plan_and_no_reasoning",
    ),
    "with a planning interval the answer gets lost": ("conformance.py::plan",),
    "at the step limit the last step is shown twice": (
        "smolagents/test_final_answer.py::test_step_limit_gives_the_answer_and_no_step_twice",
    ),
    "an answer that a check rejects counts as final": (
        "smolagents/test_final_answer.py::test_answer_that_a_check_rejects_is_not_final",
        "smolagents/test_final_answer.py::test_answer_beside_another_tool_call_is_not_final",
    ),
    "the model gets other requests with the server than without it": (
        "langgraph/test_scenarios.py::test_model_gets_the_same_requests_with_and_without_limelight",
        "agno/test_scenarios.py::test_model_gets_the_same_requests_with_and_without_limelight",
        "smolagents/test_prompts.py::test_model_gets_the_same_requests_with_and_without_limelight",
    ),
}


@lru_cache
def functions_in(file: str) -> frozenset[str]:
    tree = ast.parse((HERE / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("case", CASES)
def test_every_case_names_existing_tests(case: str) -> None:
    assert CASES[case]
    for test in CASES[case]:
        file, _, name = test.partition("::")
        assert name in functions_in(file), f"{test} is gone: name the test that holds this case now"
