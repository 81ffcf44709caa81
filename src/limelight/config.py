"""Settings: command line over environment over `config.toml` over defaults.

The structs below are the schema; `docs/settings.md` is checked against them. A wrong key or value is a SetupError
that names the key, and the nearest valid one.
"""

import difflib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from limelight.errors import SetupError

MAX_DAYS = 36_500
MAX_SECONDS = MAX_DAYS * 24 * 3600


def _setting(description: str, env: str = "", *, ge: float | None = None, le: float | None = None) -> Meta:
    return Meta(description=description, extra={"env": env}, ge=ge, le=le)


class ServerSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    host: Annotated[str, _setting("Address to listen on; other than loopback needs an API key", "LIMELIGHT_HOST")] = (
        "127.0.0.1"
    )
    port: Annotated[int, _setting("Port to listen on", "LIMELIGHT_PORT", ge=0, le=65535)] = 8000
    default_format: Annotated[
        str, _setting("Stream format for requests without `?format=`", "LIMELIGHT_DEFAULT_FORMAT")
    ] = "typed"
    heartbeat_seconds: Annotated[
        float,
        _setting("A silent stream gets a comment this often", "LIMELIGHT_HEARTBEAT_SECONDS", ge=0.1, le=MAX_SECONDS),
    ] = 10


class StoreSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    data: Annotated[str, _setting("Data folder", "LIMELIGHT_DATA")] = ".limelight"
    url: Annotated[
        str,
        _setting("Store: `sqlite`, `sqlite:///file.db`, with `?synchronous=FULL` for power loss", "LIMELIGHT_STORE"),
    ] = "sqlite"
    retention_days: Annotated[
        float, _setting("Runs that ended longer ago are removed", "LIMELIGHT_RETENTION_DAYS", ge=0, le=MAX_DAYS)
    ] = 30
    expiry_seconds: Annotated[
        float,
        _setting(
            "A session without activity for so long counts as expired", "LIMELIGHT_EXPIRY_SECONDS", ge=0, le=MAX_SECONDS
        ),
    ] = 3600


class LimitSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    body_bytes: Annotated[int, _setting("Largest request body", "LIMELIGHT_BODY_BYTES", ge=1)] = 10 * 1024 * 1024
    run_seconds: Annotated[
        float, _setting("Longest run, without the time people take", "LIMELIGHT_RUN_SECONDS", ge=0.001, le=MAX_SECONDS)
    ] = 3600
    silence_seconds: Annotated[
        float,
        _setting(
            "Longest silence, unless a tool runs or a person decides",
            "LIMELIGHT_SILENCE_SECONDS",
            ge=0.001,
            le=MAX_SECONDS,
        ),
    ] = 300
    result_bytes: Annotated[int, _setting("Largest tool result that is kept whole", "LIMELIGHT_RESULT_BYTES", ge=1)] = (
        50 * 1024 * 1024
    )


class ApprovalSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    expiry_seconds: Annotated[
        float,
        _setting(
            "An approval that nobody answers for so long is a no",
            "LIMELIGHT_APPROVAL_SECONDS",
            ge=0.001,
            le=MAX_SECONDS,
        ),
    ] = 600


class AuthSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    api_key: Annotated[str, _setting("Bearer token that every route but the probes needs", "LIMELIGHT_API_KEY")] = ""


class AgentSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    target: Annotated[str, _setting("`module:name` or `file.py:name`")]
    title: Annotated[str, _setting("Name for people; default: the agent's name")] = ""
    description: Annotated[str, _setting("One line for lists; default: the first line of its docstring")] = ""


class Settings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Everything that can be set, by section."""

    server: ServerSettings = msgspec.field(default_factory=ServerSettings)
    store: StoreSettings = msgspec.field(default_factory=StoreSettings)
    limits: LimitSettings = msgspec.field(default_factory=LimitSettings)
    approvals: ApprovalSettings = msgspec.field(default_factory=ApprovalSettings)
    auth: AuthSettings = msgspec.field(default_factory=AuthSettings)
    agents: dict[str, AgentSettings] = {}


class Setting(msgspec.Struct, frozen=True):
    """One setting as the documents show it."""

    section: str
    key: str
    env: str
    default: Any
    description: str


def load_settings(
    config: Path | None = None,
    environ: Mapping[str, str] = os.environ,
    overrides: Mapping[tuple[str, str], Any] | None = None,
) -> Settings:
    """Read the file (`config`, else ./config.toml if there is one), then let environment and command line win."""
    path = config or Path("config.toml")
    if config is None and not path.exists():
        values: dict[str, Any] = {}
    else:
        values = _read(path)
    _check_keys(values, path)
    for setting in all_settings():
        if setting.env and setting.env in environ:
            values.setdefault(setting.section, {})[setting.key] = environ[setting.env]
    for (section, key), value in (overrides or {}).items():
        if value is not None:
            values.setdefault(section, {})[key] = value
    try:
        return msgspec.convert(values, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise SetupError(f"a setting is wrong: {str(error).replace('`$.', '`')}") from error


def all_settings() -> list[Setting]:
    """Every setting, for the environment, for error messages and for the documents."""
    found: list[Setting] = []
    for section in msgspec.structs.fields(Settings):
        struct = AgentSettings if section.name == "agents" else section.type
        name = "agents.NAME" if section.name == "agents" else section.name
        for field in msgspec.structs.fields(struct):
            meta = field.type.__metadata__[0]
            default = "" if field.default is msgspec.NODEFAULT else field.default
            found.append(Setting(name, field.encode_name, meta.extra["env"], default, meta.description))
    return found


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SetupError(f"the configuration {path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SetupError(f"{path} is not valid TOML: {error}") from error


def _check_keys(values: dict[str, Any], path: Path) -> None:
    known: dict[str, list[str]] = {}
    for setting in all_settings():
        known.setdefault(setting.section, []).append(setting.key)
    sections = [name.partition(".")[0] for name in known]
    for section, content in values.items():
        if section not in sections:
            raise SetupError(f"{path}: there is no section [{section}]{_nearest(section, sections)}")
        tables = content.items() if section == "agents" and _is_table(content) else [("", content)]
        for name, table in tables:
            label = f"{section}.{name}" if name else section
            if not _is_table(table):
                raise SetupError(f"{path}: [{label}] has to be a table")
            keys = known["agents.NAME" if section == "agents" else section]
            if name and "target" not in table:
                raise SetupError(f"{path}: [{label}] needs a target, e.g. target = 'my_module:agent'")
            for key in table:
                if key not in keys:
                    raise SetupError(f"{path}: [{label}] has no setting {key!r}{_nearest(str(key), keys)}")


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _nearest(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; there are: {', '.join(sorted(known))}"
