"""The schema of the settings: one struct for each section. `docs/settings.md` is checked against it."""

from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta

from limelight.config.origin import Origin

MAX_DAYS = 36_500
MAX_SECONDS = MAX_DAYS * 24 * 3600


def _setting(description: str, env: str = "", *, ge: float | None = None, le: float | None = None) -> Meta:
    return Meta(description=description, extra={"env": env}, ge=ge, le=le)


class ServerSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    host: Annotated[str, _setting("Address to listen on; other than loopback needs a key", "LIMELIGHT_HOST")] = (
        "127.0.0.1"
    )
    port: Annotated[int, _setting("Port to listen on", "LIMELIGHT_PORT", ge=0, le=65535)] = 8000
    root_path: Annotated[
        str, _setting("Path below which a proxy shows the server, as `/limelight`; needs a key", "LIMELIGHT_ROOT_PATH")
    ] = ""
    default_format: Annotated[
        str, _setting("Stream format for requests without `?format=`", "LIMELIGHT_DEFAULT_FORMAT")
    ] = "typed"
    heartbeat_seconds: Annotated[
        float,
        _setting(
            "A silent stream gets a comment this often; clients with httpx's default time-out need less than 5",
            "LIMELIGHT_HEARTBEAT_SECONDS",
            ge=0.1,
            le=MAX_SECONDS,
        ),
    ] = 4
    grace_seconds: Annotated[
        float,
        _setting("So long runs may go on when the server is ended", "LIMELIGHT_GRACE_SECONDS", ge=0, le=MAX_SECONDS),
    ] = 5
    origins: Annotated[
        list[str], _setting("Pages of these origins may use the server too, as `https://a.example`")
    ] = []


class StoreSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    data: Annotated[str, _setting("Data folder", "LIMELIGHT_DATA")] = ".limelight"
    url: Annotated[
        str,
        _setting("Store: `sqlite`, `sqlite:///file.db`, with `?synchronous=FULL` for power loss", "LIMELIGHT_STORE"),
    ] = "sqlite"
    retention_days: Annotated[
        float, _setting("Runs that ended longer ago are removed", "LIMELIGHT_RETENTION_DAYS", ge=0, le=MAX_DAYS)
    ] = 30
    retention_max_gap_days: Annotated[
        float,
        _setting(
            "Retention pauses if the clock differs by more from the time that the server trusts; 0: it never pauses",
            "LIMELIGHT_RETENTION_MAX_GAP_DAYS",
            ge=0,
            le=MAX_DAYS,
        ),
    ] = 7
    expiry_seconds: Annotated[
        float,
        _setting(
            "A session without activity for so long counts as expired", "LIMELIGHT_EXPIRY_SECONDS", ge=0, le=MAX_SECONDS
        ),
    ] = 3600
    redact: Annotated[
        list[str], _setting("Patterns: what matches is hidden in what tools get and return, before it is kept")
    ] = []
    redact_fields: Annotated[
        list[str], _setting("Names of fields, `*` for anything, that are hidden in what tools get and return")
    ] = []


class LimitSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    body_bytes: Annotated[int, _setting("Largest request body", "LIMELIGHT_BODY_BYTES", ge=1)] = 10 * 1024 * 1024
    request_bytes_per_user: Annotated[
        int,
        _setting("Most that requests of a user hold until their runs begin", "LIMELIGHT_REQUEST_BYTES_PER_USER", ge=1),
    ] = 64 * 1024 * 1024
    message_bytes: Annotated[int, _setting("Largest message on a socket", "LIMELIGHT_MESSAGE_BYTES", ge=1)] = (
        1024 * 1024
    )
    session_messages: Annotated[
        int,
        _setting("Most messages of a session that one request gets", "LIMELIGHT_SESSION_MESSAGES", ge=1, le=1_000_000),
    ] = 10_000
    session_bytes: Annotated[
        int, _setting("Most that is kept of a session: log, results and files", "LIMELIGHT_SESSION_BYTES", ge=1)
    ] = 1024**3
    request_messages: Annotated[int, _setting("Most messages in one request", "LIMELIGHT_REQUEST_MESSAGES", ge=1)] = (
        10_000
    )
    requests_per_minute: Annotated[
        int, _setting("Requests of a user in a minute", "LIMELIGHT_REQUESTS_PER_MINUTE", ge=1)
    ] = 600
    runs: Annotated[int, _setting("Runs at once, of all users together", "LIMELIGHT_RUNS", ge=1)] = 500
    runs_per_user: Annotated[int, _setting("Runs of a user at once", "LIMELIGHT_RUNS_PER_USER", ge=1)] = 20
    waiting_per_user: Annotated[
        int, _setting("Runs of a user that wait for a person, beside those", "LIMELIGHT_WAITING_PER_USER", ge=1)
    ] = 50
    sessions_per_user: Annotated[int, _setting("Sessions of a user", "LIMELIGHT_SESSIONS_PER_USER", ge=1)] = 10_000
    streams_per_user: Annotated[
        int, _setting("Open streams and sockets of a user", "LIMELIGHT_STREAMS_PER_USER", ge=1)
    ] = 100
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
    api_key: Annotated[
        str, _setting("A key with all scopes, beside those of `limelight keys`", "LIMELIGHT_API_KEY")
    ] = ""
    issuer: Annotated[str, _setting("Who issues bearer tokens (JWT), as their `iss` says", "LIMELIGHT_ISSUER")] = ""
    audience: Annotated[str, _setting("For whom tokens are, as their `aud` says", "LIMELIGHT_AUDIENCE")] = ""
    jwks_url: Annotated[
        str, _setting("Where the issuer's keys are; default: where its OpenID configuration says", "LIMELIGHT_JWKS_URL")
    ] = ""
    user_claim: Annotated[str, _setting("What in a token is the user's id")] = "sub"
    name_claim: Annotated[str, _setting("What in a token is the user's name")] = "name"
    scope_claim: Annotated[str, _setting("Where a token names scopes, as `limelight:admin`")] = "scope"
    token_scopes: Annotated[
        tuple[Literal["use", "admin", "on-behalf-of"], ...], _setting("What every token allows, besides what it names")
    ] = ("use",)
    insecure_no_auth: Annotated[
        bool, _setting("Serve other machines without a key: everybody who can reach it may do everything")
    ] = False


class ToolSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    web: Annotated[bool, _setting("`readurl` of the built-in agents fetches pages of the web", "LIMELIGHT_WEB")] = False
    search_url: Annotated[
        str, _setting("A search engine that answers in JSON, with {query} in its address", "LIMELIGHT_SEARCH_URL")
    ] = ""
    private_addresses: Annotated[
        bool, _setting("`readurl` may go to this machine and private networks", "LIMELIGHT_PRIVATE_ADDRESSES")
    ] = False


class UnderstudySettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    pace_ms: Annotated[
        float,
        _setting("Milliseconds between two words of the understudy", "LIMELIGHT_UNDERSTUDY_PACE_MS", ge=0, le=60_000),
    ] = 15


class TracingSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    endpoint: Annotated[
        str,
        _setting("A collector that takes OTLP over HTTP, as `http://127.0.0.1:4318`", "OTEL_EXPORTER_OTLP_ENDPOINT"),
    ] = ""
    content: Annotated[bool, _setting("Spans also have questions, arguments, results and answers")] = False


class LogSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    level: Annotated[str, _setting("What is logged: DEBUG, INFO, WARNING or ERROR", "LIMELIGHT_LOG")] = "WARNING"
    format: Annotated[str, _setting("`text` for people, `json` for an object a line", "LIMELIGHT_LOG_FORMAT")] = "text"


class AgentSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    target: Annotated[str, _setting("`module:name`, `file.py:name`, or the name of a built-in agent")] = ""
    title: Annotated[str, _setting("Name for people; default: the agent's name")] = ""
    description: Annotated[str, _setting("One line for lists; default: what the agent says of itself")] = ""
    enable_streaming: Annotated[bool, _setting("False: texts come whole, not word by word")] = True
    max_steps: Annotated[
        Annotated[int, Meta(ge=1, le=100)] | None, _setting("After so many steps a run ends with what there is")
    ] = None
    planning_interval: Annotated[Annotated[int, Meta(ge=1)] | None, _setting("A plan every so many steps")] = None
    model: Annotated[str, _setting("Built-in agents: a real model, in place of the understudy")] = ""
    base_url: Annotated[str, _setting("Built-in agents: where that model is; default: OPENAI_BASE_URL")] = ""
    workspace: Annotated[str, _setting("A folder that all sessions share, in place of one for each")] = ""
    status: Annotated[dict[str, str], _setting("What is said when a tool starts, by the tool's name")] = {}
    python_tools: Annotated[list[str], _setting("Tools that take Python code, which clients show as code")] = []
    approve: Annotated[
        list[str] | None,
        _setting(
            "Built-in agents, smolagents: tools before which a person is asked; default: what deletes or runs commands"
        ),
    ] = None
    imports: Annotated[list[str] | None, _setting("codact: modules that its code may import")] = None
    execute: Annotated[bool, _setting("deep: it may run commands, which is no sandbox")] = False


class Settings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """All settings, by section, and where they were read from."""

    server: ServerSettings = msgspec.field(default_factory=ServerSettings)
    store: StoreSettings = msgspec.field(default_factory=StoreSettings)
    limits: LimitSettings = msgspec.field(default_factory=LimitSettings)
    approvals: ApprovalSettings = msgspec.field(default_factory=ApprovalSettings)
    auth: AuthSettings = msgspec.field(default_factory=AuthSettings)
    tools: ToolSettings = msgspec.field(default_factory=ToolSettings)
    understudy: UnderstudySettings = msgspec.field(default_factory=UnderstudySettings)
    tracing: TracingSettings = msgspec.field(default_factory=TracingSettings)
    log: LogSettings = msgspec.field(default_factory=LogSettings)
    agents: dict[str, AgentSettings] = {}
    origin: Origin = Origin()


class Setting(msgspec.Struct, frozen=True):
    """One setting: its section, key, environment variable, default, description and type."""

    section: str
    key: str
    env: str
    default: Any
    description: str
    type: Any


def all_settings() -> list[Setting]:
    """Return all settings of all sections."""
    return [_setting_of(name, field) for name, struct in SECTIONS.items() for field in msgspec.structs.fields(struct)]


def _setting_of(section: str, field: msgspec.structs.FieldInfo) -> Setting:
    meta = cast("Meta", field.type.__metadata__[0])
    default = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
    return Setting(section, field.encode_name, (meta.extra or {})["env"], default, meta.description or "", field.type)


AGENT = "agents.NAME"
"""The name of the section of each agent."""
SECTIONS: dict[str, type[msgspec.Struct]] = {
    "server": ServerSettings,
    "store": StoreSettings,
    "limits": LimitSettings,
    "approvals": ApprovalSettings,
    "auth": AuthSettings,
    "tools": ToolSettings,
    "understudy": UnderstudySettings,
    "tracing": TracingSettings,
    "log": LogSettings,
    AGENT: AgentSettings,
}
"""The struct of each section, by name."""
