"""Stop: the server is told, also when it cannot be reached at once, and when whoever asked for it is gone."""

import asyncio

from openwebui.parts.live_run import own_run
from openwebui.parts.server import Lost, Refused, Server
from openwebui.parts.types import Json
from openwebui.parts.valves import Valves

STOP_SECONDS = 10.0
STOP_PAUSE = 0.5
STOPPED = "Stopped"
STOPPED_HERE = "Stopped here; the server was not reached, so the agent may go on"
UNDER_WAY: set[asyncio.Task[bool]] = set()
"""The loop alone would not keep them alive."""


async def stop(valves: Valves, user: Json, run_id: str, request: Json) -> bool:
    """Stop the run that a request began; whether the server was told. Who waits for it may be cancelled meanwhile."""
    task = asyncio.create_task(_stop(valves, user, run_id, request))
    UNDER_WAY.add(task)
    task.add_done_callback(UNDER_WAY.discard)
    return await asyncio.shield(task)


async def _stop(valves: Valves, user: Json, run_id: str, request: Json) -> bool:
    try:
        async with asyncio.timeout(STOP_SECONDS), Server(valves, user) as server:
            while True:
                if await _told(server, run_id, request):
                    return True
                await asyncio.sleep(STOP_PAUSE)
    except (TimeoutError, Refused):
        return False


async def _told(server: Server, run_id: str, request: Json) -> bool:
    """Whether there is nothing more to say. Raises Refused."""
    try:
        run_id = run_id or await own_run(server, request)
        if run_id:
            await server.call("POST", f"/runs/{run_id}/cancel", {"reason": "stopped in Open WebUI"}, 5)
    except Lost:
        return False
    except Refused as refused:
        if refused.status != 404:  # a run that is gone does not go on
            raise
    return True
