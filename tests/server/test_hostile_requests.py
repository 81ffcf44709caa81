"""Hostile requests to every route, made by schemathesis from the OpenAPI document: as it says, and against it.

Some are aimed at what is somebody else's, some at what is the sender's own, some at nothing. Whatever is sent: no 5xx,
no hang, every refusal a problem with a code, nothing of anybody else, no traceback, and all is as it was before.
"""

import asyncio
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import requests
import schemathesis
from hypothesis import given
from hypothesis import strategies as st
from schemathesis import GenerationMode

from limelight.auth.key_file import Keyring
from limelight.auth.scopes import Scope
from limelight.server.sse import PING
from tests.server.hostile_input import (
    AMPLE,
    TITLE,
    Headers,
    Names,
    Victim,
    begin,
    check_unharmed,
    keeper,
    leaks,
    settle,
    trying,
)
from tests.support import agents
from tests.support.server import Served, serving

EXAMPLES = 10
SECONDS = 20
MAX_ANSWER = 4_000_000
PLAUSIBLE: dict[str, tuple[str, ...]] = {
    "format": ("typed", "tool_calls", "v2", "records"),
    "after": ("0", "1", "2.1", "9" * 32),
    "before": ("3", "2.1", "9" * 32),
    "user": ("ann", "ben"),
    "raw": ("1",),
}
"""Query parameters that chance would not find."""
CURSORS = (None, "0", "2.1", "9" * 32, "x", "\xff")


@pytest.mark.parametrize("scopes", [("use",), ("use", "admin")], ids="-".join)
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
async def test_no_request_breaks_it_or_reads_what_is_somebody_elses(
    tmp_path: Path, mode: GenerationMode, scopes: tuple[Scope, ...], caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(agents.echo, keeper, data=tmp_path, **AMPLE) as served:
        keyring = Keyring(tmp_path)
        ann, ben = bearer(keyring.create("ann", ("use",), 1)[1]), bearer(keyring.create("ben", scopes, 1)[1])
        victim = await settle(served, "ann", ann)
        before = await victim.belongings(served.runtime.store)
        schema = schemathesis.openapi.from_dict((await served.http.get("/openapi.json", headers=ben)).json())
        await Attack(served, tmp_path, victim, ben).on_all_of(schema, mode)
        await check_unharmed(served, victim, before)
    assert not [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


def bearer(key: str) -> Headers:
    return {"authorization": f"Bearer {key}"}


class Attack:
    """What one user fires at a server."""

    def __init__(self, served: Served, data: Path, victim: Victim, headers: Headers) -> None:
        self._served = served
        self._data = data
        self._victim = victim
        self._headers = {**headers, "x-limelight-user-id": victim.user, "x-limelight-user-name": victim.user}

    async def on_all_of(self, schema: Any, mode: GenerationMode) -> None:
        tried = 0
        for number, result in enumerate(schema.get_all_operations()):
            operation = result.ok()
            own = await begin(self._served, self._headers, f"own-{number}", "mine")
            if mode is GenerationMode.POSITIVE or operation.query or operation.body:
                fire = self._firing(operation, operation.as_strategy(generation_mode=mode), own)
                await asyncio.to_thread(fire)
                tried += 1
        assert tried > 10

    def _firing(self, operation: Any, cases: Any, own: Names) -> Callable[[], None]:
        """Many requests to one route, from a thread: the server has the loop."""
        targets = st.sampled_from([self._victim.waiting, self._victim.ended, own, {}])
        query = st.fixed_dictionaries(
            {},
            optional={
                name: st.sampled_from(PLAUSIBLE[name]) for name in names_in(operation.query) if name in PLAUSIBLE
            },
        )
        assert names_in(operation.path_parameters) <= own.keys(), "say how a new kind of thing is made"

        @trying(EXAMPLES)
        @given(case=cases, target=targets, query=query, cursor=st.sampled_from(CURSORS))
        def fire(case: Any, target: Names, query: Names, cursor: str | None) -> None:
            if operation.path.startswith("/admin") and operation.method == "delete":
                query.pop("user", None)  # an administrator may
            aim(case, target, query)
            self._send(case, {"last-event-id": cursor} if cursor else {})

        return fire

    def _send(self, case: Any, headers: Headers) -> None:
        options = case.as_transport_kwargs(base_url=self._served.url, headers={**self._headers, **headers})
        with requests.Session() as session:
            session.trust_env = False
            try:
                with session.request(**options, timeout=SECONDS, stream=True) as response:
                    text = whole(response)
            except requests.RequestException as error:
                raise AssertionError(case.as_curl_command()) from error
        about = (case.as_curl_command(), response.status_code, text[:500])
        assert response.status_code < 500, about
        if response.status_code >= 400:
            assert response.headers["content-type"] == "application/problem+json", about
            assert json.loads(text)["code"], about
        if case.operation.label == "GET /admin/sessions":
            text = text.replace(TITLE, "")
        assert not leaks(f"{response.headers}\n{text}", self._data), about


def names_in(parameters: Any) -> set[str]:
    return {parameter.name for parameter in parameters}


def aim(case: Any, target: Names, query: Names) -> None:
    """Replace what chance has made by what there is."""
    case.path_parameters.update({name: target[name] for name in case.path_parameters if name in target})
    case.query.update(query)
    body = cast("dict[str, Any]", case.body) if isinstance(case.body, dict) else {}
    if target and "messages" in body:
        body.update(session_id=target["session_id"], agent="echo", user_id="ann")
        if body.get("if_busy") == "wait":
            del body["if_busy"]  # the sender's own run waits for a person, and so would this


def whole(response: requests.Response) -> str:
    """The body; of a stream, all up to the first sign of life: it is up to date then."""
    body = bytearray()
    for chunk in response.iter_content(None):
        body += chunk
        assert len(body) < MAX_ANSWER
        if PING in body and response.headers["content-type"].startswith("text/event-stream"):
            break
    return body.decode()
