"""What is told of an exception: the address of whoever did not answer, and nothing that is secret."""

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
def test_the_address_is_told_if_nobody_answered(error: Exception, text: str) -> None:
    assert error_message(error) == text


def test_it_may_stand_in_what_led_to_the_error() -> None:
    error = AgentFailed("Connection error.")
    error.__cause__ = httpx.ConnectError("refused", request=REQUEST)
    assert error_message(error) == f"Connection error: {ADDRESS}"
    error.__cause__ = None
    error.__context__ = httpx.ConnectError("refused", request=REQUEST)
    error.__context__.__context__ = error
    assert error_message(error) == f"Connection error: {ADDRESS}"
