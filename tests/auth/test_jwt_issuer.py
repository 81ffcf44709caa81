"""An issuer's keys: when they are fetched, how long they are used, and invalid answers."""

from collections.abc import AsyncIterator

import pytest

from limelight.auth import jwt_issuer
from limelight.auth.jwt import TokenRules
from limelight.auth.jwt_issuer import Issuer
from limelight.errors import IssuerUnavailable, Unauthorized
from tests.auth.local_issuer import AUDIENCE, KeyPair, LocalIssuer, running_issuer


@pytest.fixture
async def issuer() -> AsyncIterator[LocalIssuer]:
    async with running_issuer() as issuer:
        yield issuer


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def reader(issuer: LocalIssuer, clock: Clock) -> Issuer:
    return Issuer(TokenRules(issuer=issuer.url, audience=AUDIENCE), f"{issuer.url}/keys", clock)


async def test_issuer_key_rotation_is_noticed_after_a_pause(issuer: LocalIssuer) -> None:
    clock = Clock()
    tokens = reader(issuer, clock)
    old = issuer.token("ann")
    assert (await tokens.verify(old)).user_id == "ann"
    issuer.keys = [KeyPair("two")]
    new = issuer.token("ben")
    with pytest.raises(Unauthorized):  # keys were fetched a moment ago, and are not fetched again so soon
        await tokens.verify(new)
    clock.now += jwt_issuer.MIN_INTERVAL_SECONDS
    assert (await tokens.verify(new)).user_id == "ben"
    with pytest.raises(Unauthorized, match="a key that its issuer does not have"):
        await tokens.verify(old)
    assert issuer.key_requests == 2


async def test_tokens_with_unknown_keys_cause_one_request_to_the_issuer(issuer: LocalIssuer) -> None:
    tokens = reader(issuer, Clock())
    for number in range(20):
        with pytest.raises(Unauthorized):
            await tokens.verify(issuer.token(by=KeyPair(f"made up {number % 2}", "EdDSA")))
    assert issuer.key_requests == 1


async def test_known_keys_are_used_while_the_issuer_is_down(issuer: LocalIssuer) -> None:
    clock = Clock()
    tokens = reader(issuer, clock)
    await tokens.verify(issuer.token())
    issuer.is_down = True
    clock.now += jwt_issuer.REFRESH_SECONDS
    assert (await tokens.verify(issuer.token("ben"))).user_id == "ben"
    assert issuer.key_requests == 2
    await tokens.verify(issuer.token("ben"))
    assert issuer.key_requests == 2  # not with every request


@pytest.mark.parametrize("reply", ["no JSON", "[]", '{"keys": []}', '{"keys": "x"}', '{"keys": [7]}', "{}"])
@pytest.mark.parametrize("what", ["configuration", "keys"])
async def test_malformed_issuer_response_raises_issuer_unavailable(what: str, reply: str, issuer: LocalIssuer) -> None:
    issuer.invalid_answers = {what: reply}
    tokens = Issuer(TokenRules(issuer=issuer.url, audience=AUDIENCE))
    with pytest.raises(IssuerUnavailable):
        await tokens.verify(issuer.token())


async def test_keys_are_not_fetched_without_https(issuer: LocalIssuer, caplog: pytest.LogCaptureFixture) -> None:
    issuer.invalid_answers = {"configuration": '{"jwks_uri": "http://keys.example/"}'}
    with pytest.raises(IssuerUnavailable):
        await Issuer(TokenRules(issuer=issuer.url, audience=AUDIENCE)).verify(issuer.token())
    assert "has to begin with https://" in caplog.text
