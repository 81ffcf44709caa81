"""Secrets are in neither the server's log nor events nor errors."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from limelight.auth.key_file import Keyring
from limelight.config import load_settings
from limelight.errors import SetupError
from limelight.events import (
    AnyEvent,
    Plan,
    ReasoningDelta,
    ReasoningFinished,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
)
from limelight.redaction.rules import REDACTED
from limelight.server.app import create_app
from limelight.sources.base import Context
from tests.support import agents
from tests.support.server import asking, collect, offer, serving
from tests.system.processes.server_process import ServerProcess

API_KEY = "the-servers-own-key-1"
MODEL_KEY = "sk-proj-0123456789abcdef"
CARD = "4000-1234-5678-9010"


async def leaky(messages: Any, ctx: Context) -> AsyncIterator[str | AnyEvent]:
    """Emits secrets in every kind of event."""
    yield ToolStarted(call_id="c", name="look", args={"card": CARD, "password": "hunter2"})
    yield ToolOutputDelta(call_id="c", text=f"paying with {CARD[:7]}")
    yield ToolOutputDelta(call_id="c", text=f"{CARD[7:]}, by {MODEL_KEY}\n")
    yield ToolFinished(call_id="c", result={"env": f"KEY={MODEL_KEY}", "keys": [API_KEY], "cards": CARD * 3000})
    approval = await ctx.approve("pay", {"card": CARD, "sum": 3}, call_id="")
    yield f"paid {approval.args['sum']} with {approval.args['card'][-4:]}"
    raise ValueError(f"401: {MODEL_KEY} is no key")


@pytest.mark.requirement("redaction-secrets", "redaction-patterns")
async def test_secrets_of_tools_are_removed_from_events_and_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", MODEL_KEY)
    settings: dict[str, Any] = {
        "auth__api_key": API_KEY,
        "store__redact": [r"\d{4}-\d{4}-\d{4}-\d{4}"],
        "store__redact_fields": ["password"],
    }
    bearer = {"authorization": f"Bearer {API_KEY}"}
    async with serving(leaky, data=tmp_path, **settings) as served:
        served.http.headers.update(bearer)
        asked = served.ask("pay", session_id="s", format="records")
        found = await collect(asked, lambda frame: frame.data["event"]["kind"] == "approval_requested")
        run_id, request = found[-1].data["run_id"], found[-1].data["event"]
        assert request["args"] == {"card": REDACTED, "sum": 3}
        path = f"/runs/{run_id}/approvals/{request['approval_id']}"
        around = {"decision": "edit", "args": {**request["args"], "card": f"my {REDACTED}"}}
        refused = await served.problem("POST", path, json=around)
        assert (refused["status"], refused["errors"][0]["path"]) == (422, "args")
        edited = {"decision": "edit", "args": {**request["args"], "sum": 4}}
        assert (await served.http.post(path, json=edited)).status_code == 200
        rest = served.stream("GET", f"/runs/{run_id}/stream", params={"format": "records", "after": "0"})
        events = [frame.data["event"] for frame in await collect(rest)]
        whole = (await served.http.get(f"/runs/{run_id}/tools/c")).json()
    assert any(event.get("text") == "paid 4 with 9010" for event in events)  # the agent gets the real value
    output = json.dumps([events, whole])
    assert whole["args"] == {"card": REDACTED, "password": REDACTED}
    assert whole["result"] == {"env": f"KEY={REDACTED}", "keys": [REDACTED], "cards": REDACTED * 3000}
    assert f"401: {REDACTED} is no key" in output
    stored = stored_in(tmp_path)
    for secret in (CARD, MODEL_KEY, API_KEY, "hunter2"):
        assert secret not in output
        assert secret.encode() not in stored


async def talkative(messages: Any, ctx: Context) -> AsyncIterator[str | AnyEvent]:
    """Emits a secret as one text and split into characters."""
    yield ReasoningDelta(message_id="r", text=f"I think of {MODEL_KEY}")
    yield ReasoningFinished(message_id="r")
    yield Plan(text=f"say {MODEL_KEY}")
    yield f"my key is {MODEL_KEY}. Again: "
    for character in MODEL_KEY:
        yield character
    yield "! And sk-proj-"


@pytest.mark.requirement("redaction-secrets")
@pytest.mark.parametrize("streams", [True, False])
async def test_secrets_in_an_agents_text_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, streams: bool
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", MODEL_KEY)
    offered = [offer(talkative, enable_streaming=streams)]
    async with serving(data=tmp_path, agents=offered) as served:
        found = await collect(served.ask("go", session_id="s", format="records"))
        run_id = found[-1].data["run_id"]
        whole = (await served.http.post("/chat", json=asking("go", session_id="t"))).json()
        answer = (await served.http.get(f"/runs/{run_id}/answer")).text
    events = [frame.data["event"] for frame in found]
    text = "".join(event["text"] for event in events if event["kind"] == "text_delta")
    assert text.startswith(f"my key is {REDACTED}. Again: ") and text.endswith(f"{REDACTED}! And sk-proj-")
    assert events[-1]["kind"] == "run_finished"
    output = json.dumps([events, whole, answer])
    assert MODEL_KEY not in output and REDACTED in answer and REDACTED in whole["message"]["content"]
    assert MODEL_KEY.encode() not in stored_in(tmp_path)


@pytest.mark.requirement("redaction-secrets")
async def test_agent_that_prints_its_environment_shows_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a tool result, and in a text that is streamed character by character."""
    monkeypatch.setenv("GITHUB_PAT", "ghp_0123456789abcdef")
    monkeypatch.setenv("DATABASE_URL", "postgres://bee:honey7@db.local/hive")
    printed = "GITHUB_PAT=ghp_0123456789abcdef DATABASE_URL=postgres://bee:honey7@db.local/hive PATH=/usr/bin"

    async def printing(messages: Any, ctx: Context) -> AsyncIterator[str | AnyEvent]:
        yield ToolStarted(call_id="c", name="env", args={})
        yield ToolFinished(call_id="c", result=printed)
        for character in printed:
            yield character

    async with serving(printing, data=tmp_path) as served:
        events = [frame.data["event"] for frame in await collect(served.ask("go", format="records"))]
    text = "".join(event["text"] for event in events if event["kind"] == "text_delta")
    (result,) = [event["result"] for event in events if event["kind"] == "tool_finished"]
    assert result == f"GITHUB_PAT={REDACTED} DATABASE_URL={REDACTED}/hive PATH=/usr/bin"
    assert text == f"GITHUB_PAT=ghp{REDACTED} DATABASE_URL=pos{REDACTED}/hive PATH=/usr/bin"  # three characters at most
    assert b"honey7" not in stored_in(tmp_path)


def stored_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())


@pytest.mark.parametrize("pattern", ["(", "[a", ".*", ""])
def test_invalid_redaction_pattern_is_refused_at_the_start(tmp_path: Path, pattern: str) -> None:
    overrides: Any = {("store", "data"): str(tmp_path), ("store", "redact"): [pattern]}
    with pytest.raises(SetupError, match=r"store\.redact: "):
        create_app(load_settings(environ={}, overrides=overrides), [offer(agents.echo)])


@pytest.mark.requirement("redaction-secrets")
def test_server_log_contains_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the log level DEBUG, for secrets in requests and in exceptions of agents."""
    monkeypatch.setenv("LIMELIGHT_LOG", "DEBUG")
    monkeypatch.setenv("LIMELIGHT_API_KEY", API_KEY)
    monkeypatch.setenv("SOME_API_KEY", MODEL_KEY)
    key = Keyring(tmp_path / "data").create("ann", ("use",), 1)[1]
    with ServerProcess(tmp_path / "data", "raising") as server:
        url = f"http://127.0.0.1:{server.port}"
        for secret in (API_KEY, key):
            bearer = {"authorization": f"Bearer {secret}"}
            assert httpx.get(f"{url}/agents", headers=bearer).status_code == 200
            assert httpx.get(f"{url}/nowhere", headers=bearer).status_code == 404
            assert httpx.post(f"{url}/chat", content=b"{", headers=bearer).status_code == 415
            failed = httpx.post(f"{url}/chat", json=asking(f"Bearer {secret}, {MODEL_KEY}"), headers=bearer)
            assert failed.status_code == 502
            assert secret not in failed.text and MODEL_KEY not in failed.text
        assert httpx.post(f"{url}/auth/login", json={"key": key}).status_code == 204
        assert httpx.get(f"{url}/agents", headers={"cookie": f"limelight_key_{server.port}={key}"}).status_code == 200
        assert httpx.get(f"{url}/agents", headers={"authorization": f"Bearer {key}x"}).status_code == 401
    assert "is not what I wanted" in server.log
    for secret in (API_KEY, MODEL_KEY, key, key.rpartition("_")[2]):
        assert secret not in server.log
