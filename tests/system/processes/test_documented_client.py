"""A client that knows only the documented types gets through silences, and sees failures, stops and open approvals."""

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.wait import DEADLINE
from tests.system.processes.documented_client import DocumentedClient
from tests.system.processes.server_process import ServerProcess

SILENCE = 7
"""Seconds of silence: more than httpx waits for the next byte by default."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    data = tmp_path_factory.mktemp("documented") / "data"
    with ServerProcess(data, "pausing", "raising", "mailing", "quiet", LIMELIGHT_HEARTBEAT_SECONDS="2") as server:
        yield server


def url_of(server: ServerProcess) -> str:
    return f"http://127.0.0.1:{server.port}"


@pytest.mark.requirement("heartbeat")
async def test_silence_over_the_read_timeout_of_httpx_does_not_end_the_stream(server: ServerProcess) -> None:
    assert (httpx.AsyncClient().timeout.read or 0) < SILENCE
    client = DocumentedClient(url_of(server))
    await client.ask(str(SILENCE), agent="pausing")
    assert client.chat == "before after"
    assert client.statuses[-1] == "Complete"


@pytest.mark.requirement("typed-document")
async def test_failed_run_has_its_message_in_the_chat(server: ServerProcess) -> None:
    client = DocumentedClient(url_of(server))
    await client.ask("honey", agent="raising")
    assert client.chat == "well\n\nError: ValueError: honey is not what I wanted"


async def test_interrupted_run_has_its_message_in_the_chat(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "quiet") as server:
        client = DocumentedClient(url_of(server))
        asking = asyncio.create_task(client.ask())
        async with asyncio.timeout(DEADLINE):
            while not client.chat:  # noqa: ASYNC110 - the client has no event to wait for
                await asyncio.sleep(0.01)
        server.signal(signal.SIGTERM)
        await asking
    assert client.chat == "…\n\nError: the server was shut down"


@pytest.mark.requirement("typed-document")
@pytest.mark.parametrize(
    ("decision", "outcome", "source"),
    [("approve", "Approved: send_mail", "sent"), ("reject", "Rejected: send_mail", "Error: rejected")],
)
async def test_open_approval_and_its_decision_are_statuses(
    server: ServerProcess, decision: str, outcome: str, source: str
) -> None:
    client = DocumentedClient(url_of(server))

    async def decide(status: str) -> None:
        if status == "Waiting for approval: send_mail":
            async with httpx.AsyncClient(base_url=url_of(server), trust_env=False) as person:
                (approval,) = (await person.get(f"/runs/{client.run_id}")).json()["approvals"]
                path = f"/runs/{client.run_id}/approvals/{approval['approval_id']}"
                (await person.post(path, json={"decision": decision})).raise_for_status()

    async with asyncio.timeout(DEADLINE):
        await client.ask(agent="mailing", on_status=decide)
    assert client.statuses == [
        "Thinking...",
        "🔧 send_mail...",
        "Waiting for approval: send_mail",
        outcome,
        "Complete",
    ]
    assert client.sources == [source]
    assert client.chat == "Done."


@pytest.mark.requirement("typed-document")
async def test_stopped_run_has_a_status(server: ServerProcess) -> None:
    client = DocumentedClient(url_of(server))
    asking = asyncio.create_task(client.ask(agent="quiet"))
    async with asyncio.timeout(DEADLINE):
        while not client.chat:  # noqa: ASYNC110 - the client has no event to wait for
            await asyncio.sleep(0.01)
        async with httpx.AsyncClient(base_url=url_of(server), trust_env=False) as person:
            await person.post(f"/runs/{client.run_id}/cancel")
        await asking
    assert client.statuses[-2:] == ["Stopped", "Complete"]
