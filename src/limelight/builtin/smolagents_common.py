"""What the agents made with smolagents share: the model and the lookup tools."""

from importlib import import_module
from typing import Any

from limelight.builtin.agent_config import Kit


def smol_model(kit: Kit) -> Any:
    make: Any = import_module("smolagents").OpenAIModel
    return make(model_id=kit.model.model, api_base=kit.model.base_url, api_key=kit.model.key)


def lookup_tools(kit: Kit) -> list[Any]:
    base: Any = import_module("smolagents").Tool

    class Search(base):
        name = "search"
        description = "Finds pages about something: a list of title, url and snippet, the best first."
        inputs = {"query": {"type": "string", "description": "What to look for."}}  # noqa: RUF012
        output_type = "array"

        def forward(self, query: str) -> Any:
            return kit.lookup.search(query)

    class ReadUrl(base):
        name = "readurl"
        description = "Reads the text of a page."
        inputs = {"url": {"type": "string", "description": "An address that search gave."}}  # noqa: RUF012
        output_type = "string"

        def forward(self, url: str) -> str:
            return kit.lookup.readurl(url)

    return [Search(), ReadUrl()]
