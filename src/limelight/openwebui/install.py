"""Installs the pipe in Open WebUI: checks its version, saves and enables the pipe, sets valves. Safe to repeat."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from limelight.errors import SetupError
from limelight.openwebui.api_client import OpenWebUI, ShareResult

FUNCTION_ID = "deep_agent_pipe"
NAME = "Deep Agent Pipe"
FILE_NAME = "deep_agent_pipe.py"
MIN_VERSION = (0, 5)
MIN_VERSION_OF_OUTPUT_ITEMS = (0, 8)
SECRET_VALVE = "API_KEY"


def pipe_text() -> str:
    """Return the source code of the pipe, from the installed package or from the folder `openwebui` of a clone."""
    here = Path(__file__).parent
    for path in (here / FILE_NAME, here.parents[2] / "openwebui" / FILE_NAME):
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise SetupError(f"{FILE_NAME} is missing from this installation: install limelight again")


def check_version(version: str) -> None:
    """Raise SetupError if this Open WebUI is too old for pipe functions. Call this before other requests."""
    if _major_minor(version) < MIN_VERSION:
        raise SetupError(f"Open WebUI {version} is too old: update it to 0.8 or newer")


def check_display(version: str, display: str) -> None:
    """Raise SetupError if this Open WebUI is too old for the chosen display of the pipe."""
    if _major_minor(version) < MIN_VERSION_OF_OUTPUT_ITEMS and display != "details":
        raise SetupError(
            f"Open WebUI {version} is too old for live rows: update it to 0.8 or newer, or add --display details"
        )


def _major_minor(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def current_display(webui: OpenWebUI) -> str:
    """Return the display in the valves of the installed pipe, or the default display."""
    display = webui.function(FUNCTION_ID) is not None and webui.valves(FUNCTION_ID).get("DISPLAY")
    return str(display or "native")


def check_admin(user: dict[str, Any]) -> None:
    """Raise SetupError if the user is not an administrator."""
    if user.get("role") != "admin":
        user_name = user.get("email") or "this user"
        raise SetupError(f"{user_name} is not an administrator of Open WebUI (role {user.get('role')}): sign in as one")


def install(webui: OpenWebUI, text: str, valves: dict[str, Any], *, share: bool) -> Iterator[str]:
    """Save the pipe as a function, enable it and set its valves. Yields a line for each step."""
    yield _save_function(webui, text)
    yield _enable(webui)
    yield _set_valves(webui, valves)
    models = [model for model in webui.models() if str(model.get("id", "")).startswith(f"{FUNCTION_ID}.")]
    names = ", ".join(str(model["name"]) for model in models)
    yield f"models: {names or 'none'}"
    if len(models) <= 1:
        yield "note: the default model alone: does Open WebUI reach the Limelight server at DEEP_AGENT_URL?"
    if share:
        yield from _share(webui, {str(model["id"]): str(model["name"]) for model in models})
    else:
        yield "note: only administrators see these models until you share them (--share, or Admin Panel, Settings)"


def _share(webui: OpenWebUI, models: dict[str, str]) -> Iterator[str]:
    """Share the models with all users. Models that an administrator has restricted are reported, not changed."""
    results = {name: webui.share(model_id, name) for model_id, name in models.items()}
    shared = [name for name, result in results.items() if result is ShareResult.SHARED]
    restricted = [name for name, result in results.items() if result is ShareResult.IS_RESTRICTED]
    if shared or not restricted:
        yield f"shared with all users: {', '.join(shared) or 'as before'}"
    if restricted:
        where = "make them public under Admin Panel, Settings, Models"
        yield f"not shared: {', '.join(restricted)}: an administrator has restricted them; {where}"


def _save_function(webui: OpenWebUI, text: str) -> str:
    function: dict[str, Any] = {"id": FUNCTION_ID, "name": NAME, "content": text}
    function["meta"] = {"description": "Shows everything an agent does while it does it.", "manifest": {}}
    existing = webui.function(FUNCTION_ID)
    if existing is None:
        webui.create(function)
        return f"function {FUNCTION_ID}: created"
    if existing.get("type") not in (None, "pipe"):
        raise SetupError(f"there is another function with the id {FUNCTION_ID}: rename or remove it first")
    if existing.get("content") == text:
        return f"function {FUNCTION_ID}: up to date"
    webui.update({**function, "meta": {**function["meta"], **(existing.get("meta") or {})}})
    return f"function {FUNCTION_ID}: updated"


def _enable(webui: OpenWebUI) -> str:
    function = webui.function(FUNCTION_ID)
    if function and function.get("is_active"):
        return "enabled: as before"
    webui.enable(FUNCTION_ID)
    return "enabled: yes, it is now"


def _set_valves(webui: OpenWebUI, wanted: dict[str, Any]) -> str:
    """Set the given valves of the pipe. Other valves, which an administrator may have set, are not changed."""
    before = webui.valves(FUNCTION_ID)
    changed = {name: value for name, value in wanted.items() if before.get(name) != value}
    if not changed:
        return "valves: as before"
    webui.set_valves(FUNCTION_ID, {**before, **changed})
    shown = ", ".join(f"{name}={'…' if name == SECRET_VALVE else value}" for name, value in changed.items())
    return f"valves: {shown}"
