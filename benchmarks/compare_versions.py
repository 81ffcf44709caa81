"""`python -m benchmarks.compare_versions OLD`: compare two versions of Limelight on this machine, in one run.

OLD is a checkout of another version, for example made by `git worktree add ../old v0.1.0`. Both servers run side by
side and take turns row by row, so that the noise of the machine affects both. The result is the median of the ratios
within each repeat: CPU per event at 1 and 100 streams, per additional viewer, and per additional socket.
"""

import argparse
import statistics
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import msgspec

from benchmarks.load_process import Client, JobKind
from benchmarks.measurement import OTHER_EVENTS, Log, event_count, job_cpu, make_job, second_stage_cpu
from benchmarks.server_process import LIMELIGHT, ROOT, Server, cores, workload_server

MeasureRow = Callable[[Server, Client], float]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How many repeats, runs, streams, viewers and sockets a comparison measures."""

    repeats: int = 8
    tokens: int = 1000
    runs: int = 20
    """Number of runs for the row with one stream."""
    streams: int = 100
    viewers: int = 100
    sockets: int = 30


class Comparison(msgspec.Struct):
    """The figures of one row: microseconds of the old and of the new version, one pair per repeat."""

    name: str
    pairs: list[tuple[float, float]] = []

    @property
    def ratio(self) -> float:
        """The median of new / old."""
        return statistics.median(new / old for old, new in self.pairs)

    def row(self) -> str:
        """Return the figures as a row of the table."""
        old, new = (statistics.median(side) for side in zip(*self.pairs, strict=True))
        ratios = sorted(new / old for old, new in self.pairs)
        return f"{self.name:34} {old:9.3f} {new:9.3f}   {self.ratio:5.2f}  [{ratios[0]:.2f} - {ratios[-1]:.2f}]"


def compare(old: Path, new: Path, plan: Plan, log: Log) -> list[Comparison]:
    """Measure both versions, in alternating order, and return one comparison for each row of the table."""
    server_core, client_core = cores()
    rows: dict[str, MeasureRow] = {
        "CPU per event, 1 stream": lambda server, client: _per_event(server, client, plan, streams=1, runs=plan.runs),
        f"CPU per event, {plan.streams} streams": lambda server, client: _per_event(
            server, client, plan, streams=plan.streams, runs=1
        ),
        "CPU per event and extra viewer": lambda server, client: _per_extra(
            server, client, plan, "viewers", plan.viewers
        ),
        "CPU per event and extra socket": lambda server, client: _per_extra(
            server, client, plan, "sockets", plan.sockets
        ),
    }
    comparisons = {name: Comparison(name) for name in rows}
    with ExitStack() as stack:
        client = stack.enter_context(Client(client_core))
        servers = [
            stack.enter_context(workload_server(LIMELIGHT, server_core, plan.tokens, checkout))
            for checkout in (old, new)
        ]
        for server in servers:
            _per_event(server, client, plan, streams=4, runs=1)
        for repeat in range(plan.repeats):
            for name, measure_row in rows.items():
                order = servers if repeat % 2 == 0 else servers[::-1]
                figures = {server.port: measure_row(server, client) for server in order}
                comparisons[name].pairs.append((figures[servers[0].port], figures[servers[1].port]))
            log(f"repeat {repeat + 1} of {plan.repeats}")
    return list(comparisons.values())


def _per_event(server: Server, client: Client, plan: Plan, *, streams: int, runs: int) -> float:
    job = make_job(server, "turn", plan.tokens, streams=streams, runs=runs)
    return job_cpu(server, client, job)[0] / event_count(job) * 1e6


def _per_extra(server: Server, client: Client, plan: Plan, kind: JobKind, count: int) -> float:
    """Return the CPU time per event that each viewer or socket after the first one adds."""
    one, all_of_them = (
        second_stage_cpu(server, client, make_job(server, "watched", plan.tokens, kind, streams))
        for streams in (1, count)
    )
    return (all_of_them - one) / (count - 1) / (plan.tokens + OTHER_EVENTS) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare_versions", description="Compare two versions.")
    parser.add_argument("old", type=Path, help="the folder of a checkout of the older version")
    parser.add_argument("--new", type=Path, default=ROOT, help="the folder of the newer version; by default this one")
    parser.add_argument("--repeats", type=int, default=Plan().repeats, metavar="N")
    options = parser.parse_args()
    for folder in (options.old, options.new):
        if not (folder / "src" / "limelight").is_dir():
            parser.error(f"{folder} is not a checkout of Limelight")
    plan = Plan(repeats=options.repeats)
    comparisons = compare(options.old.resolve(), options.new.resolve(), plan, lambda line: print(line, file=sys.stderr))
    print(f"{'µs, median':34} {'old':>9} {'new':>9}   ratio")
    for comparison in comparisons:
        print(comparison.row())


if __name__ == "__main__":
    main()
