"""What the agents made with Agno share: the model, and lookup tools as functions."""

import json
from collections.abc import Callable
from importlib import import_module
from typing import Any

from limelight.builtin.agent_config import Kit


def agno_model(kit: Kit) -> Any:
    like: Any = import_module("agno.models.openai.like").OpenAILike
    connect: Any = import_module("openai").AsyncOpenAI
    choice = kit.model
    client = connect(base_url=choice.base_url, api_key=choice.key)
    kit.closing.append(client.close)
    return like(id=choice.model, base_url=choice.base_url, api_key=choice.key, async_client=client)


def asking(kit: Kit, *tools: Callable[..., Any]) -> list[Any]:
    """The tools, those before which a person is to be asked made so that they wait."""
    return [_confirmed(tool) if tool.__name__ in kit.approve else tool for tool in tools]


def _confirmed(tool: Callable[..., Any]) -> Any:
    function: Any = import_module("agno.tools.function").Function.from_callable(tool)
    function.requires_confirmation = True
    function.description = f"{function.description} A person is asked for approval first."
    return function


def lookup_tools(kit: Kit) -> list[Callable[..., str]]:
    """Results as JSON: of a list, Agno would show Python's way of writing it."""

    def search(query: str) -> str:
        """Find pages about something. Gives titles, addresses and a few words of each, the best first.

        Args:
            query: What to look for.
        """
        return json.dumps(kit.lookup.search(query), ensure_ascii=False)

    def readurl(url: str) -> str:
        """Read the text of a page.

        Args:
            url: An address that search gave.
        """
        return kit.lookup.readurl(url)

    return [search, readurl]
