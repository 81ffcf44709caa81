"""An issuer of tokens on this machine: a key pair, an OpenID configuration and a JWKS document over HTTP."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from uvicorn import Config, Server

from limelight.server.process.uvicorn_server import bind

AUDIENCE = "limelight"
PAIRS: dict[str, Any] = {
    "RS256": lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048),
    "PS384": lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048),
    "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "ES512": lambda: ec.generate_private_key(ec.SECP521R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate,
}


class KeyPair:
    """A key pair of an issuer."""

    def __init__(self, key_id: str = "one", algorithm: str = "RS256") -> None:
        self.key_id = key_id
        self.algorithm = algorithm
        self.private = PAIRS[algorithm]()

    def public(self, **more: Any) -> dict[str, Any]:
        """Return the public key as an entry of a JWKS document."""
        encoded = jwt.get_algorithm_by_name(self.algorithm).to_jwk(self.private.public_key())
        return {**json.loads(encoded), "kid": self.key_id, "use": "sig", **more}


class LocalIssuer:
    """An issuer: its address, its keys, and a count of the requests for them."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.keys = [KeyPair()]
        self.key_requests = 0
        self.is_down = False
        self.invalid_answers: dict[str, str] = {}
        """Invalid answers, for `configuration` or `keys`."""

    @property
    def settings(self) -> dict[str, Any]:
        return {"auth__issuer": self.url, "auth__audience": AUDIENCE}

    def token(self, user: str = "ann", by: KeyPair | None = None, lasts: float = 60, **claims: Any) -> str:
        by = by or self.keys[0]
        payload = {"iss": self.url, "aud": AUDIENCE, "sub": user, "exp": time.time() + lasts, **claims}
        payload = {name: value for name, value in payload.items() if value is not None}
        return jwt.encode(payload, by.private, by.algorithm, headers={"kid": by.key_id})

    def headers(self, user: str = "ann", **options: Any) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token(user, **options)}"}

    async def configuration(self, _: Request) -> Response:
        return self._reply("configuration", {"issuer": self.url, "jwks_uri": f"{self.url}/keys"})

    async def key_set(self, _: Request) -> Response:
        self.key_requests += 1
        if self.is_down:
            return Response(status_code=500)
        return self._reply("keys", {"keys": [key.public() for key in self.keys]})

    def _reply(self, what: str, document: dict[str, Any]) -> Response:
        return Response(self.invalid_answers[what]) if what in self.invalid_answers else JSONResponse(document)


@asynccontextmanager
async def running_issuer() -> AsyncGenerator[LocalIssuer]:
    listener = bind("127.0.0.1", 0)
    issuer = LocalIssuer(f"http://127.0.0.1:{listener.getsockname()[1]}")
    routes = [
        Route("/.well-known/openid-configuration", issuer.configuration),
        Route("/keys", issuer.key_set),
    ]
    server = Server(Config(Starlette(routes=routes), log_level="error"))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield issuer
    finally:
        server.should_exit = True
        await task
