"""A fake of the calls of Open WebUI's API that an installation makes, written after the code of 0.12.4.

`tests/system/openwebui` installs the pipe into a real Open WebUI.
"""

import asyncio
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.openwebui.frame_server import running_app
from tests.openwebui.function_rules import Json, frontmatter, load_function
from tests.support.wait import DEADLINE

ADMIN: Json = {"email": "admin@example.org", "role": "admin"}
PROHIBITED = "You do not have permission to access this resource."
CREDENTIALS = "The email or password provided is incorrect."


class Refusal(Exception):
    def __init__(self, status: int, detail: str) -> None:
        self.response = JSONResponse({"detail": detail}, status)


class FakeWebUI:
    """Functions, valves and models in memory. `writes` are the paths of the calls that changed something."""

    def __init__(self) -> None:
        self.url = ""
        self.clear()

    def clear(self) -> None:
        self.version: str | None = "0.12.4"
        self.users: dict[str, Json] = {"token-1": ADMIN, "token-2": {"email": "uma@example.org", "role": "user"}}
        self.functions: dict[str, Json] = {}
        self.valves: dict[str, Json] = {}
        self.agents = ["default", "other"]
        self.shared: dict[str, Json] = {}
        self.writes: list[str] = []
        self.pages: set[str] = set()
        """Paths that answer with a page and status 200, as Open WebUI answers an unknown GET."""
        self.missing_prefix = ""
        """The prefix of the paths that this version does not have."""

    async def answer(self, request: Request) -> Response:
        path = request.url.path
        if path.startswith("/old"):  # a proxy that redirects all requests
            return RedirectResponse(self.url + path.removeprefix("/old"), 301)
        if path in self.pages:
            return HTMLResponse("<!doctype html><title>Open WebUI</title>")
        if self.missing_prefix and path.startswith(self.missing_prefix):
            return JSONResponse({"detail": "Not Found"}, 404)
        body: Any = await request.json() if await request.body() else None
        try:
            if path == "/api/version":
                return JSONResponse({"version": self.version}) if self.version else PlainTextResponse("hello")
            if path == "/api/v1/auths/signin":
                return self._sign_in(body)
            user = self.users.get(request.headers.get("authorization", "").removeprefix("Bearer "))
            if user is None:
                raise Refusal(401, "Not authenticated")
            if path == "/api/v1/auths/":
                return JSONResponse(user)
            if user["role"] != "admin":
                raise Refusal(401, PROHIBITED)
            if request.method == "POST":
                self.writes.append(path)
            return JSONResponse(self._models(request, body) if "models" in path else self._functions(path, body))
        except Refusal as refusal:
            return refusal.response

    def _sign_in(self, body: Json) -> Response:
        if (body["email"], body["password"]) != (ADMIN["email"], "correct horse"):
            raise Refusal(400, CREDENTIALS)
        return JSONResponse({"token": "token-1", **ADMIN})

    def _functions(self, path: str, body: Any) -> Any:
        match path.removeprefix("/api/v1/functions/").split("/"):
            case [""]:
                return [
                    {key: function[key] for key in ("id", "type", "is_active")} for function in self._function_list()
                ]
            case ["create"]:
                if body["id"] in self.functions:
                    raise Refusal(400, "Uh-oh! This id is already registered.")
                self.functions[body["id"]] = {"is_active": False, **self._loaded(body)}
                return self.functions[body["id"]]
            case ["id", function_id, *rest] if function_id in self.functions:
                return self._function(self.functions[function_id], rest, body)
            case _:
                raise Refusal(401, "We could not find what you're looking for :/")

    def _function(self, function: Json, what: list[str], body: Any) -> Any:
        match what:
            case ["update"]:
                function.update(self._loaded(body))
            case ["toggle"]:
                function["is_active"] = not function["is_active"]
            case ["valves"]:
                return self.valves.get(function["id"])
            case ["valves", "update"]:
                valves = load_function(function["content"]).Pipe.Valves(
                    **{k: v for k, v in body.items() if v is not None}
                )
                self.valves[function["id"]] = valves.model_dump(exclude_unset=True)
                return self.valves[function["id"]]
            case _:
                pass
        return function

    def _loaded(self, body: Json) -> Json:
        """Execute a function that is saved, and read its manifest from the frontmatter."""
        assert load_function(body["content"]).Pipe
        manifest = frontmatter(body["content"])
        return {**body, "type": "pipe", "meta": {**body["meta"], "manifest": manifest}}

    def _function_list(self) -> list[Json]:
        return list(self.functions.values())

    def _models(self, request: Request, body: Any) -> Any:
        if request.url.path == "/api/v1/models/model":
            return self.shared.get(request.query_params["id"])
        if request.url.path == "/api/v1/models/create":
            assert body["id"] not in self.shared
            self.shared[body["id"]] = body
            return body
        ids = [f"{f['id']}.{agent}" for f in self._function_list() if f["is_active"] for agent in self.agents]
        return {"data": [{"id": id_, "name": f"Name of {id_}"} for id_ in ids]}


@contextmanager
def running_fake_webui() -> Generator[FakeWebUI]:
    """Run the fake in a thread, because a command blocks while it waits for a response."""
    fake, ready, loop, stop = FakeWebUI(), threading.Event(), asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        app = Starlette(routes=[Route("/{path:path}", fake.answer, methods=["GET", "POST"])])
        async with running_app(app) as fake.url:
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert ready.wait(DEADLINE)
        yield fake
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(30)
        loop.close()
