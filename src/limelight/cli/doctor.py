"""`limelight doctor`: checks the installation and the settings, and says how to fix what is wrong."""

import asyncio
import os
import shlex
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import httpx
import msgspec
import typer

from limelight import __version__, plugins
from limelight.agents.module_import import missing_requirements
from limelight.agents.project import PROJECT_FILE, read_project
from limelight.agents.resolve import resolve_agents
from limelight.auth.key_file import Keyring
from limelight.backups.content import read_last_backup
from limelight.builtin.model_choice import OPENAI, ModelChoice, choose_model
from limelight.cli.log_setup import check_log
from limelight.cli.options import Config, Data, JsonLines, settings_of
from limelight.cli.output import local_time, print_json
from limelight.cli.retention import retention_status
from limelight.cli.server_choice import answers
from limelight.config import Settings, env_file
from limelight.errors import LimelightError, StoreError
from limelight.private_files import OTHERS
from limelight.runs.retention_clock import advise, describe
from limelight.sandbox.levels import choose_level
from limelight.server.app import create_app, make_store
from limelight.server.auth.middleware import is_loopback
from limelight.server.schemas import ReadyView

READY_SECONDS = 10
"""Timeout of the readiness request. It exceeds the five seconds after which a server reports a blocked store."""
LOW_DISK = 500 * 1024 * 1024
DAY_SECONDS = 24 * 3600
OLD_DAYS = 7
"""Age in days from which a backup is reported as old."""


class Finding(msgspec.Struct, frozen=True):
    """The result of one check of `limelight doctor`. `fix` says what to do if something is wrong."""

    what: str
    state: Literal["ok", "note", "wrong"]
    found: str
    fix: str = ""


def doctor(data: Data = None, config: Config = None, as_json: JsonLines = False) -> None:
    """Check settings, agents, sandbox, port, data, store, retention, backup and model. Exit code 1 if a check fails."""
    findings: list[Finding] = []
    for finding in _findings(data, config):
        findings.append(finding)
        if as_json:
            print_json(finding)
        else:
            typer.echo(_line(finding))
    if any(finding.state == "wrong" for finding in findings):
        raise typer.Exit(1)


def _line(finding: Finding) -> str:
    mark = {"ok": "✓", "note": "·", "wrong": "✗"}[finding.state]
    found = f"\n{'':<13}".join(finding.found.splitlines())
    line = f"{mark} {finding.what:<10} {found}"
    return f"{line}\n  {'':<10} → {finding.fix}" if finding.fix else line


def _findings(data: Path | None, config: Path | None) -> Iterator[Finding]:
    yield Finding("limelight", "ok", __version__)
    yield _python()
    yield _parts()
    try:
        settings = settings_of(data, config)
    except LimelightError as error:
        yield Finding("settings", "wrong", error.detail, "correct the file or the environment variable")
        return
    yield _settings(settings)
    if Path(PROJECT_FILE).is_file():
        yield _check(_project, settings)
    if settings.server.env_file and Path(settings.server.env_file).is_file():
        yield _check(_env_file, settings)
    for check in (_agents, _sandbox, _server, _address, _port, _data, _store, _retention, _backup, _model):
        yield _check(check, settings)


def _check(check: Callable[[Settings], Finding], settings: Settings) -> Finding:
    try:
        return check(settings)
    except LimelightError as error:
        return Finding(check.__name__.strip("_"), "wrong", error.detail)
    except OSError as error:
        return Finding(check.__name__.strip("_"), "wrong", *_describe(error))


def _describe(error: OSError) -> tuple[str, str]:
    """Describe an OSError for the user. Returns what is wrong, and how to fix it."""
    if error.filename is None:
        return str(error), ""
    found = f"{error.filename} cannot be used ({error.strerror})"
    if isinstance(error, PermissionError):
        return found, "run doctor as the user of the server, or give your user access to the file"
    return found, "check its disk"


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding("python", "ok", f"{version} ({sys.executable})")


def _parts() -> Finding:
    found = {group: ", ".join(sorted(plugins.find(group))) for group in ("sources", "dialects", "stores")}
    if not all(found.values()):
        return Finding("parts", "wrong", "the package's entry points are missing", "install it again: make setup")
    return Finding("parts", "ok", "; ".join(f"{group}: {names}" for group, names in found.items()))


def _settings(settings: Settings) -> Finding:
    file = settings.origin.file
    if not file:
        return Finding("settings", "ok", f"no config.toml in {Path.cwd()}; defaults and environment")
    return Finding("settings", "ok", f"{Path(file).absolute()}, then environment")


def _project(_: Settings) -> Finding:
    """Report the graphs of the LangGraph project in the current folder, which only `limelight serve .` serves."""
    project = read_project(Path(PROJECT_FILE))
    names = ", ".join(graph.key for graph in project.graphs)
    if missing := missing_requirements(project.requirements()):
        fix = f"install them: pip install {' '.join(missing)}"
        return Finding("project", "note", f"{PROJECT_FILE}: {names}; packages are not installed", fix)
    return Finding("project", "ok", f"{PROJECT_FILE}: {names}; serve its graphs with: limelight serve .")


def _env_file(settings: Settings) -> Finding:
    """Report how many variables the environment file has, and which lines are invalid."""
    path = Path(settings.server.env_file)
    file = env_file.parse(path.read_text(encoding="utf-8", errors="replace"), {})
    found = f"{path}: variables for your own agents: {len(file.variables)}"
    if file.invalid_lines:
        lines = ", ".join(map(str, file.invalid_lines))
        return Finding("env_file", "note", found, f"correct the lines that are not NAME=value: {lines}")
    return Finding("env_file", "ok", found)


def _agents(settings: Settings) -> Finding:
    offer = resolve_agents(settings)
    return Finding("agents", "ok", ", ".join(agent.name for agent in offer.agents), offer.hint)


def _sandbox(settings: Settings) -> Finding:
    """Report which sandbox confines code that a model writes, and which agents run such code."""
    users = [agent.name for agent in resolve_agents(settings).agents if agent.sandbox is not None]
    if not users:
        return Finding("sandbox", "ok", "not needed: no agent runs code of its model")
    chosen = choose_level(settings.sandbox.level)
    names = ", ".join(users)
    reason = f" ({chosen.reason})" if chosen.reason else ""
    if chosen.level == "none":
        fix = "install bubblewrap, or see docs/sandbox.md" if settings.sandbox.level == "auto" else ""
        return Finding("sandbox", "note", f"none: code of {names} runs unconfined{reason}", fix)
    return Finding("sandbox", "ok", f"{chosen.level}: for code of {names}{reason}")


def _server(settings: Settings) -> Finding:
    """Check that `limelight serve` would accept the settings, by creating the application as it does."""
    check_log(settings)
    create_app(settings)
    return Finding("server", "ok", "would start with these settings")


def _address(settings: Settings) -> Finding:
    host = settings.server.host
    keyring = Keyring(Path(settings.store.data))
    count = bool(settings.auth.api_key) + sum(key.revoked_at is None for key in keyring.all())
    issued = f"tokens of {settings.auth.issuer}" if settings.auth.issuer else ""
    if count or issued:
        made = f"{count} key{'s' if count > 1 else ''}" if count else ""
        return Finding("address", "ok", f"{host}, with {' and '.join(filter(None, (made, issued)))}")
    if keyring.has_any():
        fix = "create one: limelight keys create --user NAME"
        return Finding("address", "wrong", f"{host}, and all its keys are revoked", fix)
    if settings.auth.insecure_no_auth:
        return Finding("address", "ok", f"{host}, open to everyone who can reach it, because insecure_no_auth is set")
    if not is_loopback((socket.gethostbyname(host), 0)):
        fix = "create one: limelight keys create --user NAME; or serve on 127.0.0.1"
        return Finding("address", "wrong", f"{host} without a key", fix)
    return Finding("address", "ok", f"{host}, open to this machine only")


def _port(settings: Settings) -> Finding:
    port = settings.server.port
    with socket.socket() as probe:
        probe.settimeout(2)
        if probe.connect_ex(("127.0.0.1", port)) != 0:
            return Finding("port", "ok", f"{port} is free")
    if answers(f"http://127.0.0.1:{port}"):
        return _running_server(port)
    fix = f"end that program, or choose another port: limelight serve --port {port + 1}"
    return Finding("port", "wrong", f"{port} is used by another program", fix)


def _running_server(port: int) -> Finding:
    """Ask the server that runs on this port whether its store works. Its data folder may differ from the settings."""
    answer = httpx.get(f"http://127.0.0.1:{port}/ready", timeout=READY_SECONDS)
    store = msgspec.json.decode(answer.content, type=ReadyView).checks.get("store", "unknown")
    if store != "ok":
        fix = "see the server's log"
        return Finding("port", "wrong", f"{port}: a Limelight server answers there; its store: {store}", fix)
    return Finding("port", "ok", f"{port}: a Limelight server answers there")


def _data(settings: Settings) -> Finding:
    folder = Path(settings.store.data).absolute()
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        return Finding("data", "wrong", f"{folder} cannot be written", "choose another folder: --data, LIMELIGHT_DATA")
    free = shutil.disk_usage(there).free
    if free < LOW_DISK:
        return Finding("data", "wrong", f"{folder}: {free // 1024**2} MB are free", "free space on that disk")
    found = f"{folder}, {free // 1024**3} GB free"
    if folder.exists() and folder.stat().st_mode & OTHERS:
        fix = f"make it private: chmod 700 {shlex.quote(str(folder))}"
        return Finding("data", "note", f"{found}; other users of this machine have access to the folder", fix)
    return Finding("data", "ok", found)


def _store(settings: Settings) -> Finding:
    found = asyncio.run(make_store(settings).examine())
    return Finding("store", "ok", f"{settings.store.url}: {found}")


def _retention(settings: Settings) -> Finding:
    """Check whether retention, the deletion of old runs, is paused. A pause is only a note: the server still works."""
    try:
        status = retention_status(settings)
    except StoreError:
        return Finding("retention", "note", "unknown, because the store cannot be read")
    if status.pause is not None:
        return Finding("retention", "note", f"paused: {describe(status.pause)}", advise(status.pause))
    return Finding("retention", "ok", f"runs are deleted {status.retention_days:g} days after their end")


def _backup(settings: Settings) -> Finding:
    note = read_last_backup(Path(settings.store.data))
    if note is None:
        return Finding("backup", "note", "no backup is known; create one with: limelight backup TARGET")
    found, fix = f"{local_time(note.at)}, {note.target}", "create one: limelight backup TARGET"
    if not os.access(note.target, os.F_OK):  # also False if the folder of the backup cannot be read
        return Finding("backup", "note", f"{found}, which no longer exists", f"if it was not moved, {fix}")
    days = int((time.time() - note.at / 1000) // DAY_SECONDS)
    if days >= OLD_DAYS:
        return Finding("backup", "note", f"{found}, {days} days old", fix)
    return Finding("backup", "ok", found)


def _model(settings: Settings) -> Finding:
    tables = [table for table in settings.agents.values() if table.model]
    environ = env_file.environ_without_files()
    named = [choose_model(table.model, table.base_url, environ) for table in tables]
    findings = [_check_model(choice) for choice in dict.fromkeys([choose_model("", "", environ), *named])]
    wrong = [finding for finding in findings if finding.state == "wrong"]
    return wrong[0] if wrong else msgspec.structs.replace(findings[-1], found="; ".join(f.found for f in findings))


def _check_model(choice: ModelChoice) -> Finding:
    if choice.is_understudy:
        return Finding("model", "note", "the offline model, unless LIMELIGHT_MODEL or an agent's model is set")
    if choice.base_url == OPENAI:
        return Finding("model", "ok", f"{choice.model}, at OpenAI")
    try:
        headers = {"authorization": f"Bearer {choice.key}"}
        status = httpx.get(f"{choice.base_url.rstrip('/')}/models", headers=headers, timeout=5).status_code
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        found = f"{choice.base_url} does not answer: {error}"
        return Finding("model", "wrong", found, "start it, or correct OPENAI_BASE_URL")
    if status in (401, 403):
        return Finding("model", "wrong", f"{choice.base_url} refuses the key", "correct OPENAI_API_KEY")
    return Finding("model", "ok", f"{choice.model}, at {choice.base_url}")
