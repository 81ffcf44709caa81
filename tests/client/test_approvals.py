"""Decisions of the client and of a run with a real server, and their refusals."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from limelight.client import AlreadyDecided, Client, ClientError, Expired, NotFound, NotOffered, Run, SyncClient
from limelight.events import ApprovalRequested
from limelight.sources.base import Context
from tests.support import agents
from tests.support.server import serving
from tests.support.wait import eventually


async def wait_for_request(run: Run) -> ApprovalRequested:
    """Read until the agent requests an approval."""
    async for record in run:
        if isinstance(record.event, ApprovalRequested):
            return record.event
    raise AssertionError("no approval was requested")


async def start_asker(client: Client) -> tuple[Run, ApprovalRequested]:
    run = await client.start("go", agent="asker")
    return run, await wait_for_request(run)


async def test_client_lists_decides_and_returns_approvals(client: Client) -> None:
    run, request = await start_asker(client)
    (listed,) = (await client.run(run.run_id)).approvals
    assert (listed.approval_id, listed.name, listed.args) == (request.approval_id, "delete", {"path": "/tmp/x"})
    assert (listed.state, listed.decided_at) == ("requested", None)
    assert await client.approve(run.run_id, request.approval_id) == "approve"
    assert await run.text() == "decision: approve by local"

    run, request = await start_asker(client)
    assert await client.reject(run.run_id, request.approval_id, "too risky") == "reject"
    assert await run.text() == "decision: reject by local"
    assert (await client.result(run.run_id, "d")).error == "too risky"

    run, request = await start_asker(client)
    assert await client.edit(run.run_id, request.approval_id, {"path": "/tmp/y"}) == "edit"
    await run.wait()
    assert (await client.result(run.run_id, "d")).result == "deleted /tmp/y"
    decided = await client.approval(run.run_id, request.approval_id)
    assert (decided.state, decided.edited_args, decided.by) == ("edit", {"path": "/tmp/y"}, "local")
    assert isinstance(decided.decided_at, int)


async def test_run_approves_edits_and_rejects(client: Client) -> None:
    run, request = await start_asker(client)
    assert await run.approve(request.approval_id) == "approve"
    assert await run.text() == "decision: approve by local"
    run, request = await start_asker(client)
    assert await run.edit(request.approval_id, {"path": "z"}) == "edit"
    run, request = await start_asker(client)
    assert await run.reject(request.approval_id, "no") == "reject"


def test_sync_client_and_run_decide(url: str) -> None:
    with SyncClient(url) as client:
        run = client.start("go", agent="asker")
        request = next(record.event for record in run if isinstance(record.event, ApprovalRequested))
        assert client.approval(run.run_id, request.approval_id).state == "requested"
        assert run.edit(request.approval_id, {"path": "z"}) == "edit"
        run.wait()
        assert client.result(run.run_id, "d").result == "deleted z"
        with pytest.raises(AlreadyDecided):
            client.decide(run.run_id, request.approval_id, "approve")


async def test_second_decision_raises_already_decided(client: Client) -> None:
    run, request = await start_asker(client)
    await run.approve(request.approval_id)
    with pytest.raises(AlreadyDecided) as raised:
        await run.reject(request.approval_id)
    assert (raised.value.status, raised.value.code) == (409, "already_decided")
    await run.wait()
    with pytest.raises(AlreadyDecided, match="delete"):
        await client.decide(run.run_id, request.approval_id, "approve")
    with pytest.raises(NotFound):
        await run.approve("apr_of_nobody")


async def test_rejection_with_the_reason_expired_is_not_an_expiry(client: Client) -> None:
    run, request = await start_asker(client)
    await run.reject(request.approval_id, "expired")
    await run.wait()
    with pytest.raises(AlreadyDecided):
        await run.approve(request.approval_id)


async def test_decision_after_the_expiry_raises_expired(tmp_path: Path) -> None:
    async with (
        serving(agents.asker, data=tmp_path / "data", approvals__expiry_seconds=0.05) as served,
        Client(served.url) as client,
    ):
        run = await client.start("go")
        request = await wait_for_request(run)
        await run.wait()
        with pytest.raises(Expired, match="ran out") as raised:
            await run.approve(request.approval_id)
        assert (raised.value.status, raised.value.code) == (410, "expired")


async def test_decision_that_is_not_offered_raises(tmp_path: Path) -> None:
    async def strict(messages: object, ctx: Context) -> AsyncIterator[str]:
        """Takes yes or no."""
        yield (await ctx.approve("publish", {}, decisions=("approve", "reject"))).decision

    async with serving(strict, data=tmp_path / "data") as served, Client(served.url) as client:
        run = await client.start("go")
        request = await wait_for_request(run)
        with pytest.raises(NotOffered, match="approve, reject") as raised:
            await run.edit(request.approval_id, {})
        assert [error.path for error in raised.value.errors] == ["decision"]
        await run.approve(request.approval_id)
        assert await run.text() == "approve"


async def test_approval_returns_complete_large_arguments(tmp_path: Path) -> None:
    args = {"text": "ä" * 60_000}

    async def careful(messages: object, ctx: Context) -> AsyncIterator[str]:
        """Asks with much."""
        yield (await ctx.approve("publish", args)).decision

    async with serving(careful, data=tmp_path / "data") as served, Client(served.url) as client:
        run = await client.start("go")
        request = await wait_for_request(run)
        (listed,) = (await client.run(run.run_id)).approvals
        assert (request.truncated, listed.truncated) == (True, True)
        assert (await client.approval(run.run_id, request.approval_id)).args == args
        await run.cancel()
        await eventually(lambda: not served.runtime.control.live_run(run.run_id))


FORM = {"type": "object", "properties": {"town": {"enum": ["Lyon", "Paris"]}, "days": {"type": "integer"}}}


async def travel(messages: object, ctx: Context) -> AsyncIterator[str]:
    """Asks a question with a form."""
    answer = await ctx.approve("trip", {"to": ""}, question="Where and how long?", answer_schema=FORM)
    yield f"{answer.decision} {answer.answered}: {answer.answer}"


@pytest.mark.requirement("questions-in-their-form")
async def test_client_run_and_socket_answer_questions(tmp_path: Path) -> None:
    async with serving(travel, data=tmp_path) as served, Client(served.url) as client:
        run = await client.start("go")
        request = await wait_for_request(run)
        (listed,) = (await client.run(run.run_id)).approvals
        assert (listed.question, listed.answer_schema) == ("Where and how long?", FORM)
        with pytest.raises(ClientError, match='town: expected one of "Lyon", "Paris"'):
            await client.respond(run.run_id, request.approval_id, {"town": "Rome"})
        assert await client.respond(run.run_id, request.approval_id, {"town": "Lyon", "days": 2}) == "respond"
        assert await run.text() == "edit True: {'town': 'Lyon', 'days': 2}"
        decided = await client.approval(run.run_id, request.approval_id)
        assert (decided.state, decided.answered) == ("edit", True)
        assert decided.edited_args == {"value": {"town": "Lyon", "days": 2}}

        run = await client.start("go")
        assert await run.respond((await wait_for_request(run)).approval_id, {"town": "Paris"}) == "respond"
        assert await run.text() == "edit True: {'town': 'Paris'}"

        run = await client.start("go", session_id="s")
        request = await wait_for_request(run)
        async with client.connect("s") as socket:
            assert await socket.respond(request.approval_id, {"town": "Paris"}) == "respond"
        assert await run.text() == "edit True: {'town': 'Paris'}"


async def test_approval_without_a_question_takes_no_answer(client: Client) -> None:
    run, request = await start_asker(client)
    with pytest.raises(NotOffered, match="delete can be answered with approve, edit, reject"):
        await run.respond(request.approval_id, "no")
    await run.cancel()
