"""The schema of the settings: one struct for each section. `docs/settings.md` is checked against it."""

from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta

from limelight.config.setting_locations import Origin

MAX_DAYS = 36_500
MAX_SECONDS = MAX_DAYS * 24 * 3600


def _setting(description: str, env: str = "", *, ge: float | None = None, le: float | None = None) -> Meta:
    return Meta(description=description, extra={"env": env}, ge=ge, le=le)


class ServerSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The section `[server]`: address, formats, heartbeat and shutdown."""

    host: Annotated[str, _setting("Address to listen on; other than loopback needs a key", "LIMELIGHT_HOST")] = (
        "127.0.0.1"
    )
    port: Annotated[int, _setting("Port to listen on", "LIMELIGHT_PORT", ge=0, le=65535)] = 8000
    root_path: Annotated[
        str, _setting("Path prefix under which a proxy serves it, as `/limelight`; needs a key", "LIMELIGHT_ROOT_PATH")
    ] = ""
    default_format: Annotated[
        str, _setting("Stream format for requests without `?format=`", "LIMELIGHT_DEFAULT_FORMAT")
    ] = "typed"
    heartbeat_seconds: Annotated[
        float,
        _setting(
            "Interval of comments on a silent stream; clients with httpx's default time-out need less than 5",
            "LIMELIGHT_HEARTBEAT_SECONDS",
            ge=0.1,
            le=MAX_SECONDS,
        ),
    ] = 4
    grace_seconds: Annotated[
        float,
        _setting(
            "Time that runs get to end when the server shuts down", "LIMELIGHT_GRACE_SECONDS", ge=0, le=MAX_SECONDS
        ),
    ] = 5
    trusted_proxies: Annotated[
        list[str],
        _setting("Addresses and networks of proxies whose headers name the client", "FORWARDED_ALLOW_IPS"),
    ] = msgspec.field(default_factory=lambda: ["127.0.0.1", "::1"])
    origins: Annotated[
        list[str], _setting("Origins of other pages that may use the server, as `https://a.example`")
    ] = []
    env_file: Annotated[
        str, _setting("File with environment variables for your own agents; empty: none", "LIMELIGHT_ENV_FILE")
    ] = ".env"


class StoreSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The section `[store]`: data folder, database, retention and redaction."""

    data: Annotated[str, _setting("Data folder", "LIMELIGHT_DATA")] = ".limelight"
    url: Annotated[
        str,
        _setting("Store: `sqlite`, `sqlite:///file.db`, with `?synchronous=FULL` for power loss", "LIMELIGHT_STORE"),
    ] = "sqlite"
    retention_days: Annotated[
        float, _setting("Runs that ended longer ago are deleted", "LIMELIGHT_RETENTION_DAYS", ge=0, le=MAX_DAYS)
    ] = 30
    retention_max_gap_days: Annotated[
        float,
        _setting(
            "Retention pauses if the clock differs by more from the trusted time; 0: it never pauses",
            "LIMELIGHT_RETENTION_MAX_GAP_DAYS",
            ge=0,
            le=MAX_DAYS,
        ),
    ] = 7
    expiry_seconds: Annotated[
        float,
        _setting(
            "A session without activity for this time is expired", "LIMELIGHT_EXPIRY_SECONDS", ge=0, le=MAX_SECONDS
        ),
    ] = 3600
    redact: Annotated[
        list[str], _setting("Patterns: matches in the input and output of tools are redacted before they are stored")
    ] = []
    redact_fields: Annotated[
        list[str], _setting("Names of fields, `*` for anything, that are redacted in the input and output of tools")
    ] = []


class LimitSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The section `[limits]`: maximum sizes, numbers and times."""

    body_bytes: Annotated[int, _setting("Largest request body", "LIMELIGHT_BODY_BYTES", ge=1)] = 10 * 1024 * 1024
    request_bytes_per_user: Annotated[
        int,
        _setting("Memory of a user's requests whose runs have not begun", "LIMELIGHT_REQUEST_BYTES_PER_USER", ge=1),
    ] = 64 * 1024 * 1024
    request_bytes: Annotated[
        int, _setting("Memory of all users' requests whose runs have not begun", "LIMELIGHT_REQUEST_BYTES", ge=1)
    ] = 512 * 1024 * 1024
    conversation_bytes_per_user: Annotated[
        int,
        _setting("Memory of a user's conversations between turns", "LIMELIGHT_CONVERSATION_BYTES_PER_USER", ge=0),
    ] = 64 * 1024 * 1024
    conversation_bytes: Annotated[
        int, _setting("Memory of all conversations between turns", "LIMELIGHT_CONVERSATION_BYTES", ge=0)
    ] = 256 * 1024 * 1024
    image_pixels_per_user: Annotated[
        int, _setting("Decoded pixels of images in a user's live runs", "LIMELIGHT_IMAGE_PIXELS_PER_USER", ge=0)
    ] = 50_000_000
    image_pixels: Annotated[
        int, _setting("Decoded pixels of images in all live runs", "LIMELIGHT_IMAGE_PIXELS", ge=0)
    ] = 150_000_000
    message_bytes: Annotated[int, _setting("Largest message on a socket", "LIMELIGHT_MESSAGE_BYTES", ge=1)] = (
        1024 * 1024
    )
    session_messages: Annotated[
        int,
        _setting("Messages of a session that one request returns", "LIMELIGHT_SESSION_MESSAGES", ge=1, le=1_000_000),
    ] = 10_000
    session_bytes: Annotated[
        int, _setting("Size of a session: log, results and files", "LIMELIGHT_SESSION_BYTES", ge=1)
    ] = 1024**3
    workspace_bytes: Annotated[
        int, _setting("Size of a session's workspace while code runs in it", "LIMELIGHT_WORKSPACE_BYTES", ge=1)
    ] = 1024**3
    request_messages: Annotated[int, _setting("Messages in one request", "LIMELIGHT_REQUEST_MESSAGES", ge=1)] = 10_000
    requests_per_minute: Annotated[
        int, _setting("Requests of a user per minute", "LIMELIGHT_REQUESTS_PER_MINUTE", ge=1)
    ] = 600
    runs: Annotated[int, _setting("Concurrent runs of all users", "LIMELIGHT_RUNS", ge=1)] = 500
    runs_per_user: Annotated[int, _setting("Concurrent runs of a user", "LIMELIGHT_RUNS_PER_USER", ge=1)] = 20
    waiting_per_user: Annotated[
        int, _setting("Additional runs of a user that wait for an approval", "LIMELIGHT_WAITING_PER_USER", ge=1)
    ] = 50
    sandboxes: Annotated[int, _setting("Sandboxes of all users at once", "LIMELIGHT_SANDBOXES", ge=1)] = 128
    sandboxes_per_user: Annotated[
        int, _setting("Sandboxes of a user at once", "LIMELIGHT_SANDBOXES_PER_USER", ge=1)
    ] = 32
    sessions_per_user: Annotated[int, _setting("Sessions of a user", "LIMELIGHT_SESSIONS_PER_USER", ge=1)] = 10_000
    streams_per_user: Annotated[
        int, _setting("Open streams and sockets of a user", "LIMELIGHT_STREAMS_PER_USER", ge=1)
    ] = 100
    connections: Annotated[int, _setting("Open connections in all", "LIMELIGHT_CONNECTIONS", ge=1)] = 4096
    connections_per_address: Annotated[
        int,
        _setting("Open connections of an address without a key", "LIMELIGHT_CONNECTIONS_PER_ADDRESS", ge=1),
    ] = 256
    connections_per_user: Annotated[
        int, _setting("Open connections of a user", "LIMELIGHT_CONNECTIONS_PER_USER", ge=1)
    ] = 256
    connections_per_second: Annotated[
        float,
        _setting("New connections of an address per second", "LIMELIGHT_CONNECTIONS_PER_SECOND", ge=0.1, le=1_000_000),
    ] = 200
    run_seconds: Annotated[
        float,
        _setting(
            "Longest run, without the time that it waits for approvals",
            "LIMELIGHT_RUN_SECONDS",
            ge=0.001,
            le=MAX_SECONDS,
        ),
    ] = 3600
    silence_seconds: Annotated[
        float,
        _setting(
            "Longest silence, unless a tool runs or an approval is open",
            "LIMELIGHT_SILENCE_SECONDS",
            ge=0.001,
            le=MAX_SECONDS,
        ),
    ] = 300
    result_bytes: Annotated[
        int, _setting("Largest tool result that is stored completely", "LIMELIGHT_RESULT_BYTES", ge=1)
    ] = 50 * 1024 * 1024


class ApprovalSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The section `[approvals]`: the time after which an approval without a decision is rejected."""

    expiry_seconds: Annotated[
        float,
        _setting(
            "An approval without a decision is rejected after this time",
            "LIMELIGHT_APPROVAL_SECONDS",
            ge=0.001,
            le=MAX_SECONDS,
        ),
    ] = 600


class AuthSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The section `[auth]`: the API key, and the issuer of tokens."""

    api_key: Annotated[
        str, _setting("A key with all scopes, in addition to those of `limelight keys`", "LIMELIGHT_API_KEY")
    ] = ""
    issuer: Annotated[str, _setting("Issuer of bearer tokens (JWT), the claim `iss`", "LIMELIGHT_ISSUER")] = ""
    audience: Annotated[str, _setting("Audience of tokens, the claim `aud`", "LIMELIGHT_AUDIENCE")] = ""
    jwks_url: Annotated[
        str, _setting("Address of the issuer's keys; default: from its OpenID configuration", "LIMELIGHT_JWKS_URL")
    ] = ""
    user_claim: Annotated[str, _setting("Claim with the user id")] = "sub"
    name_claim: Annotated[str, _setting("Claim with the user name")] = "name"
    scope_claim: Annotated[str, _setting("Claim with scopes, as `limelight:admin`")] = "scope"
    token_scopes: Annotated[
        tuple[Literal["use", "admin", "on-behalf-of"], ...],
        _setting("Scopes of every token, in addition to those that it names"),
    ] = ("use",)
    insecure_no_auth: Annotated[
        bool, _setting("Serve other machines without a key: everyone who can reach the server has all rights")
    ] = False


class ToolSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The section `[tools]`: network access of the built-in agents' tools."""

    web: Annotated[bool, _setting("`readurl` of the built-in agents fetches web pages", "LIMELIGHT_WEB")] = False
    search_url: Annotated[
        str, _setting("Address of a search engine that returns JSON, with {query} in it", "LIMELIGHT_SEARCH_URL")
    ] = ""
    private_addresses: Annotated[
        bool,
        _setting("`readurl` may open addresses of this machine and of private networks", "LIMELIGHT_PRIVATE_ADDRESSES"),
    ] = False


class SandboxSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The section `[sandbox]`: where code of a model runs, and what it may use."""

    level: Annotated[
        Literal["auto", "bubblewrap", "landlock", "none"],
        _setting("How code of a model is confined; `auto` is the strongest that works here", "LIMELIGHT_SANDBOX"),
    ] = "auto"
    network: Annotated[bool, _setting("Code of a model may use the network")] = False
    read_only: Annotated[list[str], _setting("Files and folders that code of a model may read, besides Python")] = []
    memory_mb: Annotated[int, _setting("Memory of code, in MB", ge=128, le=1_048_576)] = 1024
    cpu_seconds: Annotated[int, _setting("CPU time of a process of code", ge=1, le=1_000_000)] = 600
    processes: Annotated[int, _setting("Processes of a command of `deep`; Python code has one", ge=4, le=10_000)] = 64
    file_mb: Annotated[int, _setting("Size of a file that code writes, in MB", ge=1, le=1_048_576)] = 256


class UnderstudySettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The section `[understudy]`: the offline model."""

    pace_ms: Annotated[
        float,
        _setting("Milliseconds between two words of the understudy", "LIMELIGHT_UNDERSTUDY_PACE_MS", ge=0, le=60_000),
    ] = 15


class TracingSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The section `[tracing]`: OpenTelemetry spans."""

    endpoint: Annotated[
        str,
        _setting("Collector that accepts OTLP over HTTP, as `http://127.0.0.1:4318`", "OTEL_EXPORTER_OTLP_ENDPOINT"),
    ] = ""
    content: Annotated[bool, _setting("Spans have input, arguments, results and answers")] = False


class LogSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The section `[log]`: level and format of the server's log."""

    level: Annotated[str, _setting("Lowest level that is logged: DEBUG, INFO, WARNING or ERROR", "LIMELIGHT_LOG")] = (
        "WARNING"
    )
    format: Annotated[str, _setting("`text` for people, `json` for one object per line", "LIMELIGHT_LOG_FORMAT")] = (
        "text"
    )


class AgentSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A section `[agents.NAME]`: the settings of one agent."""

    target: Annotated[str, _setting("`module:name`, `file.py:name`, or the name of a built-in agent")] = ""
    title: Annotated[str, _setting("Displayed name; default: the agent's name")] = ""
    description: Annotated[str, _setting("One line for lists; default: the agent's own description")] = ""
    enable_streaming: Annotated[bool, _setting("False: texts are sent when they are complete, not as deltas")] = True
    max_steps: Annotated[
        Annotated[int, Meta(ge=1, le=100)] | None, _setting("Limit of steps, after which a run ends with what it has")
    ] = None
    planning_interval: Annotated[Annotated[int, Meta(ge=1)] | None, _setting("Steps between two plans")] = None
    model: Annotated[str, _setting("Built-in agents: a real model instead of the understudy")] = ""
    base_url: Annotated[str, _setting("Built-in agents: address of that model; default: OPENAI_BASE_URL")] = ""
    workspace: Annotated[str, _setting("A folder that all sessions share, instead of one folder for each")] = ""
    status: Annotated[dict[str, str], _setting("Status texts when a tool starts, by the name of the tool")] = {}
    python_tools: Annotated[list[str], _setting("Tools that take Python code, which clients display as code")] = []
    approve: Annotated[
        list[str] | None,
        _setting(
            "Built-in agents, smolagents: tools that need approval; default: those that delete files or run commands"
        ),
    ] = None
    imports: Annotated[list[str] | None, _setting("codact: modules that its code may import")] = None
    execute: Annotated[bool, _setting("deep: it may run commands, in the sandbox")] = False
    sandbox: Annotated[bool, _setting("smolagents: code of the model runs in the sandbox, as that of codact")] = False
    input: Annotated[dict[str, Any], _setting("LangGraph: input values that a conversation begins with")] = {}
    context: Annotated[
        dict[str, Any], _setting("LangGraph: values of the graph's context, which it also finds in `configurable`")
    ] = {}
    context_from_request: Annotated[
        bool | list[str], _setting("Context values that a request may set: all, none, or those of these names")
    ] = False


class Settings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """All settings, by section, and the places where they were set."""

    server: ServerSettings = msgspec.field(default_factory=ServerSettings)
    store: StoreSettings = msgspec.field(default_factory=StoreSettings)
    limits: LimitSettings = msgspec.field(default_factory=LimitSettings)
    approvals: ApprovalSettings = msgspec.field(default_factory=ApprovalSettings)
    auth: AuthSettings = msgspec.field(default_factory=AuthSettings)
    tools: ToolSettings = msgspec.field(default_factory=ToolSettings)
    sandbox: SandboxSettings = msgspec.field(default_factory=SandboxSettings)
    understudy: UnderstudySettings = msgspec.field(default_factory=UnderstudySettings)
    tracing: TracingSettings = msgspec.field(default_factory=TracingSettings)
    log: LogSettings = msgspec.field(default_factory=LogSettings)
    agents: dict[str, AgentSettings] = {}
    sources: dict[str, str] = {}
    """The section `[sources]`: sources that the user has written, each a name and a target such as `file.py:Class`."""
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
    """Return the settings of all sections of the configuration file."""
    return [_setting_of(name, field) for name, struct in SECTIONS.items() for field in msgspec.structs.fields(struct)]


def _setting_of(section: str, field: msgspec.structs.FieldInfo) -> Setting:
    meta = cast("Meta", field.type.__metadata__[0])
    default = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
    return Setting(section, field.encode_name, (meta.extra or {})["env"], default, meta.description or "", field.type)


AGENT = "agents.NAME"
"""The name of the section of each agent."""
SECTIONS: dict[str, type[msgspec.Struct]] = {
    **{
        field.name: field.type
        for field in msgspec.structs.fields(Settings)
        if field.name not in ("agents", "sources", "origin")
    },
    AGENT: AgentSettings,
}
"""The struct of each section, by name."""
