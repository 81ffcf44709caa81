"""Requests through the proxies: whole answers, links, refusals that are the server's own, sockets, and our clients."""

import json
import os
import subprocess
import sys

import httpx
import pytest

from limelight.client import Message, SyncClient
from limelight.events import RunFinished
from tests.support.server import asking
from tests.system.openwebui.processes import KEY
from tests.system.proxy.proxies import Certificate, Site


def test_complete_answer(http: httpx.Client) -> None:
    answer = http.post("/chat", json=asking("hello")).json()
    assert answer["message"]["content"] == "You said hello."


@pytest.mark.parametrize("megabytes", [11, 40])
def test_too_large_body_is_refused_by_the_server(http: httpx.Client, megabytes: int) -> None:
    body = json.dumps(asking("x" * (megabytes * 1024 * 1024))).encode()
    refused = http.post("/chat", content=body, headers={"content-type": "application/json"})
    assert (refused.status_code, refused.json()["code"]) == (413, "body_too_large")
    assert http.get("/health").json() == {"status": "ok"}


@pytest.mark.requirement("links-below-root")
def test_links_of_a_response_can_be_followed(http: httpx.Client, site: Site) -> None:
    outside = httpx.URL(site.url)
    answer = http.post("/chat", json=asking("make")).json()
    link = answer["tools"][0]["result_url"]
    assert link.startswith(f"{site.root}/runs/")
    assert http.get(outside.join(link)).json()["result"].startswith("long long")
    stream = http.get(f"/runs/{answer['run_id']}/stream").text
    frames = [json.loads(line.removeprefix("data: ")) for line in stream.splitlines() if line.startswith("data: ")]
    (file,) = [frame["data"] for frame in frames if frame["type"] == "artifact"]
    assert http.get(outside.join(file["url"])).content == b"a note"
    (cut,) = [frame["data"] for frame in frames if frame["type"] == "tool_end"]
    assert http.get(outside.join(cut["result_url"])).status_code == 200
    (server,) = http.get("/openapi.json").json()["servers"]
    assert http.get(outside.join(server["url"].rstrip("/") + "/agents")).status_code == 200
    problem = http.get("/nowhere").json()
    assert http.get(outside.join(problem["type"])).status_code == 200


def test_path_without_its_slash_redirects_to_the_page(http: httpx.Client, site: Site) -> None:
    reply = http.get(site.url, follow_redirects=True)
    assert (reply.status_code, reply.url.path or "/") == (200, f"{site.root}/")
    assert "<div id=" in reply.text


def test_request_without_a_key_is_refused(http: httpx.Client) -> None:
    for claim in ({}, {"x-forwarded-for": "127.0.0.1"}, {"host": "localhost"}):
        refused = http.get("/agents", headers={**claim, "authorization": ""})
        assert (refused.status_code, refused.json()["code"]) == (401, "unauthorized")


# Our own clients


@pytest.fixture
def trusting(monkeypatch: pytest.MonkeyPatch, certificate: Certificate) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.file))


@pytest.mark.usefixtures("trusting")
def test_client_starts_runs_and_opens_sockets(site: Site) -> None:
    with SyncClient(site.url, key=KEY) as client:
        records = list(client.start("hello"))
        assert isinstance(records[-1].event, RunFinished)
        with client.connect(f"{site.name.replace(', ', '-')}-socket") as socket:
            assert socket.send("hello there").startswith("run_")
            answers = (item for item in socket if isinstance(item, Message) and item.whole)
            assert next(item for item in answers if "You said" in item.content).content == "You said hello there."


@pytest.mark.parametrize("site", ["nginx, below", "caddy, below"], indirect=True)
def test_command_line_starts_a_run(site: Site, certificate: Certificate) -> None:
    command = [sys.executable, "-m", "limelight", "run", "hello", "--url", site.url]
    environment = {**os.environ, "SSL_CERT_FILE": str(certificate.file), "LIMELIGHT_API_KEY": KEY}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "You said hello." in ended.stdout
