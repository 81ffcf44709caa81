"""The message of an exception: it names the address of a server that did not answer, without credentials."""

from typing import Any

import httpx
import openai
import pytest

from limelight.errors import AgentFailed
from limelight.runs.error_message import error_message

REQUEST: Any = httpx.Request("POST", "https://ann:secret@models.example:8443/v1/chat?key=secret")
REFUSED: Any = httpx.Response(401, request=REQUEST)
ADDRESS = "https://models.example:8443/v1/chat"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("oh no."), "ValueError: oh no."),
        (openai.APIConnectionError(request=REQUEST), f"APIConnectionError: Connection error: {ADDRESS}"),
        (openai.APITimeoutError(request=REQUEST), f"APITimeoutError: Request timed out: {ADDRESS}"),
        (httpx.ConnectError("refused", request=REQUEST), f"ConnectError: refused: {ADDRESS}"),
        (httpx.ConnectError(f"refused at {ADDRESS}.", request=REQUEST), f"ConnectError: refused at {ADDRESS}."),
        (httpx.ConnectError("refused"), "ConnectError: refused"),
        (
            httpx.ConnectError("no", request=httpx.Request("GET", "http://[::1]:9/x")),
            "ConnectError: no: http://[::1]:9/x",
        ),
        (openai.AuthenticationError("no key", response=REFUSED, body=None), "AuthenticationError: no key"),
    ],
)
def test_message_names_the_address_of_a_request_without_an_answer(error: Exception, text: str) -> None:
    assert error_message(error) == text


def test_address_is_found_in_causes_and_contexts() -> None:
    error = AgentFailed("Connection error.")
    error.__cause__ = httpx.ConnectError("refused", request=REQUEST)
    assert error_message(error) == f"Connection error: {ADDRESS}"
    error.__cause__ = None
    error.__context__ = httpx.ConnectError("refused", request=REQUEST)
    error.__context__.__context__ = error
    assert error_message(error) == f"Connection error: {ADDRESS}"
