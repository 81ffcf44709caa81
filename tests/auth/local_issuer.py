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


class SignedBy:
    """A key pair of an issuer."""

    def __init__(self, key_id: str = "one", algorithm: str = "RS256") -> None:
        self.key_id = key_id
        self.algorithm = algorithm
        self.private = PAIRS[algorithm]()

    def public(self, **more: Any) -> dict[str, Any]:
        """As a JWKS document has it."""
        written = jwt.get_algorithm_by_name(self.algorithm).to_jwk(self.private.public_key())
        return {**json.loads(written), "kid": self.key_id, "use": "sig", **more}


class LocalIssuer:
    """Its address, its keys, and how often these were asked for."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.keys = [SignedBy()]
        self.asked = 0
        self.is_down = False
        self.nonsense: dict[str, str] = {}
        """What it answers in place of its `configuration` or its `keys`."""

    @property
    def settings(self) -> dict[str, Any]:
        return {"auth__issuer": self.url, "auth__audience": AUDIENCE}

    def token(self, user: str = "ann", by: SignedBy | None = None, lasts: float = 60, **claims: Any) -> str:
        by = by or self.keys[0]
        said = {"iss": self.url, "aud": AUDIENCE, "sub": user, "exp": time.time() + lasts, **claims}
        said = {name: value for name, value in said.items() if value is not None}
        return jwt.encode(said, by.private, by.algorithm, headers={"kid": by.key_id})

    def headers(self, user: str = "ann", **options: Any) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token(user, **options)}"}

    async def configuration(self, _: Request) -> Response:
        return self._reply("configuration", {"issuer": self.url, "jwks_uri": f"{self.url}/keys"})

    async def key_set(self, _: Request) -> Response:
        self.asked += 1
        if self.is_down:
            return Response(status_code=500)
        return self._reply("keys", {"keys": [key.public() for key in self.keys]})

    def _reply(self, what: str, document: dict[str, Any]) -> Response:
        return Response(self.nonsense[what]) if what in self.nonsense else JSONResponse(document)


@asynccontextmanager
async def issuing() -> AsyncGenerator[LocalIssuer]:
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
