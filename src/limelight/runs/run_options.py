"""Stores the options of a run with the run, so that another process can resume it with the same options.

Sessions write them for agents whose runs survive a restart of the server; `reopen` reads them.
"""

import msgspec

from limelight.models import Result, Run, RunOptions
from limelight.runs.truncation import result_key
from limelight.stores.base import Store

KEY = result_key("terms")


def options_as_results(options: RunOptions) -> list[Result]:
    """Return what is stored with the run; nothing if all options are defaults."""
    if options == RunOptions():
        return []
    return [Result(key=KEY, media_type="application/json", body=msgspec.json.encode(options))]


async def load_options(store: Store, run: Run) -> RunOptions:
    stored = await store.result(run.run_id, KEY)
    return RunOptions() if stored is None else msgspec.json.decode(stored.body, type=RunOptions)
