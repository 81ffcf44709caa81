"""The measured process: Limelight with an agent of each framework, and routes that use the same agents without it.

`python -m benchmarks.frameworks.server PORT MODEL_URL`. Both ways share one process, one loop and one heap, so that
the difference between them is Limelight and nothing else. `/alone/{name}` reads the framework's own stream;
`/source/{name}` reads what Limelight's source makes of it, with no engine behind. They answer with all the text.
"""

import logging
import sys
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from benchmarks.frameworks.agents import QUESTION, Cast, casts
from limelight.agents.load import wrap
from limelight.config import load_settings
from limelight.events import AnyEvent, ReasoningDelta, TextDelta
from limelight.messages import Message
from limelight.runs.agents import Agent
from limelight.server.app import create_app
from limelight.server.process.uvicorn_server import LimelightServer, bind
from limelight.sources.base import Source, Turn
from tests.sources.fake_turn import FakeContext


class NoContext(FakeContext):
    """A run that is none: nobody listens, and nobody is asked."""

    def __init__(self, run_id: str) -> None:
        super().__init__()
        self.run_id = run_id

    def emit(self, event: AnyEvent) -> None: ...


async def said_by(source: Source) -> list[str]:
    """A turn of the source, without an engine."""
    run_id = str(uuid4())
    asked = [Message(role="user", content=QUESTION)]
    items = source.run(Turn(messages=asked, context=NoContext(run_id), memory_key=run_id))
    return [item.text async for item in items if isinstance(item, TextDelta | ReasoningDelta)]


def routes(by_name: dict[str, Cast], sources: dict[str, Source]) -> list[Route]:
    async def alone(request: Request) -> PlainTextResponse:
        await request.body()
        ways = by_name[request.path_params["name"]].alone
        return PlainTextResponse("".join(await ways[request.query_params.get("way", "")]()))

    async def source(request: Request) -> PlainTextResponse:
        await request.body()
        return PlainTextResponse("".join(await said_by(sources[request.path_params["name"]])))

    return [Route("/alone/{name}", alone, methods=["POST"]), Route("/source/{name}", source, methods=["POST"])]


def main(port: int, model_url: str) -> None:
    logging.basicConfig(level=logging.ERROR)
    by_name = casts(model_url)
    sources = {name: wrap(cast.agent, name) for name, cast in by_name.items()}
    agents = [Agent(name=name, source=source, title=name, description="") for name, source in sources.items()]
    app = create_app(load_settings(overrides={("store", "data"): "data"}), agents)
    app.router.routes.extend(routes(by_name, sources))
    LimelightServer(app, bind("127.0.0.1", port), announce=lambda _: None).run()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
