"""The measured process: Limelight with an agent of each framework, and routes that use the same agents without it.

`python -m benchmarks.frameworks.server PORT MODEL_URL`. Both share one process, one event loop and one heap, so that
they differ by Limelight only. `/alone/{name}` reads the framework's own stream; `/source/{name}` reads the events of
Limelight's source, without an engine. Both respond with the complete text.
"""

import logging
import sys
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from benchmarks.frameworks.agents import QUESTION, FrameworkAgent, framework_agents
from limelight.agents.load import wrap
from limelight.config import load_settings
from limelight.events import AnyEvent, ReasoningDelta, TextDelta
from limelight.messages import Message
from limelight.runs.agent_registry import Agent
from limelight.server.app import create_app
from limelight.server.process.uvicorn_server import LimelightServer, bind
from limelight.sources.base import Source, Turn
from tests.sources.fake_turn import FakeContext


class SilentContext(FakeContext):
    """A run's context for sources that run without an engine. It drops emitted events."""

    def __init__(self, run_id: str) -> None:
        super().__init__()
        self.run_id = run_id

    def emit(self, event: AnyEvent) -> None: ...


async def read_source(source: Source) -> list[str]:
    """Run one turn of the source without an engine, and return its tokens."""
    run_id = str(uuid4())
    messages = [Message(role="user", content=QUESTION)]
    items = source.run(Turn(messages=messages, context=SilentContext(run_id), memory_key=run_id))
    return [item.text async for item in items if isinstance(item, TextDelta | ReasoningDelta)]


def routes(agents: dict[str, FrameworkAgent], sources: dict[str, Source]) -> list[Route]:
    async def alone(request: Request) -> PlainTextResponse:
        await request.body()
        readers = agents[request.path_params["name"]].alone
        return PlainTextResponse("".join(await readers[request.query_params.get("way", "")]()))

    async def source(request: Request) -> PlainTextResponse:
        await request.body()
        return PlainTextResponse("".join(await read_source(sources[request.path_params["name"]])))

    return [Route("/alone/{name}", alone, methods=["POST"]), Route("/source/{name}", source, methods=["POST"])]


def main(port: int, model_url: str) -> None:
    logging.basicConfig(level=logging.ERROR)
    framework = framework_agents(model_url)
    sources = {name: wrap(one.agent, name) for name, one in framework.items()}
    agents = [Agent(name=name, source=source, title=name, description="") for name, source in sources.items()]
    app = create_app(load_settings(overrides={("store", "data"): "data"}), agents)
    app.router.routes.extend(routes(framework, sources))
    LimelightServer(app, bind("127.0.0.1", port), announce=lambda _: None).run()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
