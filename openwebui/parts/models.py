"""Agents of the server, as models of Open WebUI."""

DEFAULT_MODEL = "default"
"""The server's default agent, whatever its name is."""
CALLED_DEFAULT = "_default"
"""An agent that is called `default` and is not it. No agent can have this for a name: a letter or digit comes first."""


def model_of(agent: str) -> str:
    return CALLED_DEFAULT if agent == DEFAULT_MODEL else agent


def agent_of(model: str) -> str:
    """The agent's name; "" for the default one. Open WebUI puts the id of the function before the model's."""
    chosen = model.partition(".")[2]
    return {DEFAULT_MODEL: "", CALLED_DEFAULT: DEFAULT_MODEL}.get(chosen, chosen)
