"""What an installation does, step by step; each step says what it found or changed. Safe to repeat."""

import re
from collections.abc import Iterator
from typing import Any

from limelight.errors import SetupError
from limelight.openwebui.api import OpenWebUI, Shared

FUNCTION_ID = "deep_agent_pipe"
NAME = "Deep Agent Pipe"
OLDEST = (0, 5)
NATIVE_SINCE = (0, 8)
_SECRET = "API_KEY"


def check_version(version: str) -> None:
    """Raises SetupError if this Open WebUI has no functions like the pipe. Before anything else is asked of it."""
    if _numbers(version) < OLDEST:
        raise SetupError(f"Open WebUI {version} is too old: update it to 0.8 or newer")


def check_display(version: str, display: str) -> None:
    """Raises SetupError if this Open WebUI cannot draw what the pipe would send."""
    if _numbers(version) < NATIVE_SINCE and display != "details":
        raise SetupError(
            f"Open WebUI {version} is too old for live rows: update it to 0.8 or newer, or add --display details"
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def shown_now(webui: OpenWebUI) -> str:
    """The display that is set there, if the pipe is there."""
    found = webui.function(FUNCTION_ID) is not None and webui.valves(FUNCTION_ID).get("DISPLAY")
    return str(found or "native")


def check_admin(user: dict[str, Any]) -> None:
    if user.get("role") != "admin":
        who = user.get("email") or "this user"
        raise SetupError(f"{who} is not an administrator of Open WebUI (role {user.get('role')}): sign in as one")


def install(webui: OpenWebUI, text: str, valves: dict[str, Any], *, share: bool) -> Iterator[str]:
    """Put the pipe in, enable it, set its valves; a line for each step."""
    yield _put(webui, text)
    yield _enabled(webui)
    yield _valves(webui, valves)
    models = [model for model in webui.models() if str(model.get("id", "")).startswith(f"{FUNCTION_ID}.")]
    names = ", ".join(str(model["name"]) for model in models)
    yield f"models: {names or 'none'}"
    if len(models) <= 1:
        yield "note: the default model alone: does Open WebUI reach the Limelight server at DEEP_AGENT_URL?"
    if share:
        yield from _shared(webui, {str(model["id"]): str(model["name"]) for model in models})
    else:
        yield "note: only administrators see these models until you share them (--share, or Admin Panel, Settings)"


def _shared(webui: OpenWebUI, models: dict[str, str]) -> Iterator[str]:
    """Who may use a model that somebody has an entry for is theirs to say, so that is told, not changed."""
    found = {name: webui.share(model_id, name) for model_id, name in models.items()}
    now = [name for name, shared in found.items() if shared is Shared.NOW]
    private = [name for name, shared in found.items() if shared is Shared.NOT]
    if now or not private:
        yield f"shared with everybody: {', '.join(now) or 'as before'}"
    if private:
        where = "make them public under Admin Panel, Settings, Models"
        yield f"not shared: {', '.join(private)}: somebody has said who may use them; {where}"


def _put(webui: OpenWebUI, text: str) -> str:
    function: dict[str, Any] = {"id": FUNCTION_ID, "name": NAME, "content": text}
    function["meta"] = {"description": "Shows everything an agent does while it does it.", "manifest": {}}
    found = webui.function(FUNCTION_ID)
    if found is None:
        webui.create(function)
        return f"function {FUNCTION_ID}: created"
    if found.get("type") not in (None, "pipe"):
        raise SetupError(f"there is another function with the id {FUNCTION_ID}: rename or remove it first")
    if found.get("content") == text:
        return f"function {FUNCTION_ID}: up to date"
    webui.update({**function, "meta": {**function["meta"], **(found.get("meta") or {})}})
    return f"function {FUNCTION_ID}: updated"


def _enabled(webui: OpenWebUI) -> str:
    found = webui.function(FUNCTION_ID)
    if found and found.get("is_active"):
        return "enabled: as before"
    webui.enable(FUNCTION_ID)
    return "enabled: yes, it is now"


def _valves(webui: OpenWebUI, wanted: dict[str, Any]) -> str:
    """Only what was asked for changes; what an administrator set by hand stays."""
    before = webui.valves(FUNCTION_ID)
    changed = {name: value for name, value in wanted.items() if before.get(name) != value}
    if not changed:
        return "valves: as before"
    webui.set_valves(FUNCTION_ID, {**before, **changed})
    shown = ", ".join(f"{name}={'…' if name == _SECRET else value}" for name, value in changed.items())
    return f"valves: {shown}"
