"""The settings of the pipe: the valves of the administrator and of each user."""

from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, Field, field_validator


class Valves(BaseModel):
    DEEP_AGENT_URL: str = Field(
        "http://localhost:8000", description="Address of the Limelight server, as Open WebUI's server reaches it."
    )
    API_KEY: str = Field(
        "",
        description="The server's API key. With it, each user of Open WebUI has separate sessions.",
        json_schema_extra={"input": {"type": "password"}},
    )
    DISPLAY: Literal["native", "collapse", "details", "plain"] = Field(
        "native",
        description="`native`: a live row for each tool. `collapse`: one block with all steps. "
        "`details`: a block for each finished tool, for Open WebUI before 0.8. `plain`: only the answer.",
    )
    SHOW_TOOL_CITATIONS: bool = Field(True, description="List tool results as sources below the answer.")
    SHOW_SUBAGENT_STATUS: bool = Field(True, description="Show the work of sub-agents in the status line.")
    REQUEST_TIMEOUT: int = Field(
        300, gt=0, description="Seconds without a byte after which the connection counts as lost."
    )
    RECONNECT_SECONDS: int = Field(120, ge=0, description="How many seconds the pipe tries to reconnect.")
    PUBLIC_URL: str = Field(
        "", description="Address of the server as a browser reaches it, for links to files and to very long results."
    )

    @field_validator("DEEP_AGENT_URL", "API_KEY", "PUBLIC_URL")
    @classmethod
    def _strip(cls, value: str) -> str:
        """Remove spaces and line breaks around a value, which pasting may add."""
        return value.strip()


class UserValves(BaseModel):
    DISPLAY: Literal["default", "native", "collapse", "details", "plain"] = Field(
        "default", description="How an agent's work is shown; `default` is what the administrator chose."
    )
    TOOL_CITATIONS: Literal["default", "show", "hide"] = Field(
        "default", description="Tool results as sources below the answer."
    )
    SUBAGENT_STATUS: Literal["default", "show", "hide"] = Field(
        "default", description="The work of sub-agents in the status line."
    )


class DisplayOptions(NamedTuple):
    """The display settings for one user: the user's valves override the administrator's."""

    display: str
    tool_citations: bool
    subagent_status: bool

    @classmethod
    def resolve(cls, valves: Valves, user_valves: Any) -> "DisplayOptions":
        def choose(name: str, default: Any) -> Any:
            value = getattr(user_valves, name, "default")
            return default if value == "default" else {"show": True, "hide": False}.get(value, value)

        return cls(
            choose("DISPLAY", valves.DISPLAY),
            choose("TOOL_CITATIONS", valves.SHOW_TOOL_CITATIONS),
            choose("SUBAGENT_STATUS", valves.SHOW_SUBAGENT_STATUS),
        )
