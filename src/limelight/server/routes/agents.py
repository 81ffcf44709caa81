"""The route that lists the agents of the server."""

import asyncio
from typing import Any, cast

from limelight import __version__
from limelight.json_values import fields_of, items_of
from limelight.redaction.rules import Redactor
from limelight.runs.agent_registry import Agent
from limelight.server.endpoint import ApiRequest, Router
from limelight.server.schemas import AgentsView, AgentView

router = Router("Agents")


@router.route("GET", "/agents", "List agents")
async def list_agents(request: ApiRequest) -> AgentsView:
    """List the agents of this server. The default agent answers requests that name no agent."""
    agents = request.runtime.agents
    redactor = request.runtime.redactor
    sandboxes = {agent.name: await asyncio.to_thread(sandbox_level, agent) for agent in agents}
    return AgentsView(
        __version__,
        [
            AgentView(
                name=agent.name,
                title=agent.title,
                description=agent.description,
                framework=agent.source.framework,
                model=agent.model,
                default=agent is agents.default,
                sandbox=sandboxes[agent.name][0],
                sandbox_reason=sandboxes[agent.name][1],
                context_from_request=agent.context_from_request,
                **_schemas(agent, redactor),
            )
            for agent in agents
        ],
    )


def _schemas(agent: Agent, redactor: Redactor) -> dict[str, Any]:
    """Return the fields of an agent's view that say what it takes besides a question.

    A default in a schema may be a secret, because the code of an agent may read it from the environment.
    """
    schemas = agent.source.schemas
    shown: dict[str, Any] = {}
    if schemas.has_more_than_question and schemas.input is not None:
        shown |= {"input_schema": schemas.input, "question_key": schemas.question_key}
    if schemas.context is not None and schemas.context.get("properties"):
        shown["context_schema"] = schemas.context
    if schemas.configurable is not None:
        shown["configurable_schema"] = schemas.configurable
    return {name: _without_secrets(value, redactor) for name, value in shown.items()}


def _without_secrets(schema: Any, redactor: Redactor) -> Any:
    """Return a part of a JSON Schema in which secrets are redacted, also defaults of fields with secret names."""
    if isinstance(schema, list):
        return [_without_secrets(part, redactor) for part in items_of(cast("object", schema))]
    if not isinstance(schema, dict):
        return redactor.redact_value(schema)
    parts = {key: _without_secrets(part, redactor) for key, part in fields_of(cast("object", schema)).items()}
    for name, field in fields_of(parts.get("properties")).items():
        if "default" in fields_of(field):
            field["default"] = redactor.redact_field(name, field["default"])
    return parts


def sandbox_level(agent: Agent) -> tuple[str, str]:
    """Return the sandbox level of an agent, and why it is not the strongest; two empty strings if it runs no code.

    Blocks while the level is being determined.
    """
    if agent.sandbox is None:
        return "", ""
    found = agent.sandbox.availability
    return found.level, found.reason
