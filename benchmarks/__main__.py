"""`python -m benchmarks`: measure and print the tables; `--write` also writes `docs/benchmarks.md`."""

import argparse
import sys

import msgspec

from benchmarks.frameworks.measure import QUICK as QUICK_FRAMEWORKS
from benchmarks.frameworks.measure import FrameworksPlan, measure_frameworks
from benchmarks.frameworks.report import frameworks_section, frameworks_table
from benchmarks.measure import QUICK, Plan, measure
from benchmarks.noisy_neighbour.measure import QUICK as QUICK_NEIGHBOURS
from benchmarks.noisy_neighbour.measure import NeighboursPlan, measure_neighbours
from benchmarks.noisy_neighbour.report import neighbours_section, neighbours_table
from benchmarks.page.measure import QUICK as QUICK_PAGE
from benchmarks.page.measure import PagePlan, measure_page
from benchmarks.page.report import page_section, page_table
from benchmarks.pings.measure import QUICK as QUICK_PINGS
from benchmarks.pings.measure import PingsPlan, measure_pings
from benchmarks.pings.report import pings_section, pings_table
from benchmarks.report import document, machine, table
from benchmarks.server import ROOT

ROUNDS = 5
"""Of the frameworks, for each repeat of the rest: they are shorter."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="What a streamed event costs.")
    parser.add_argument("--quick", action="store_true", help="five minutes instead of seventeen")
    parser.add_argument("--repeats", type=int, choices=range(1, 51), metavar="1-50", help="how often to measure each")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md")
    options = parser.parse_args()
    plan, frameworks_plan = (QUICK, QUICK_FRAMEWORKS) if options.quick else (Plan(), FrameworksPlan())
    if options.repeats:
        plan = msgspec.structs.replace(plan, repeats=options.repeats)
        frameworks_plan = msgspec.structs.replace(frameworks_plan, rounds=ROUNDS * options.repeats)
    figures = measure(plan, _say)
    pings_plan = QUICK_PINGS if options.quick else PingsPlan()
    pings = measure_pings(pings_plan, _say)
    neighbours_plan = QUICK_NEIGHBOURS if options.quick else NeighboursPlan()
    neighbours = measure_neighbours(neighbours_plan, _say)
    frameworks = measure_frameworks(frameworks_plan, _say)
    page_plan = QUICK_PAGE if options.quick else PagePlan()
    page = measure_page(page_plan, _say)
    print(machine())
    print()
    print(table(figures))
    if figures.joined:
        print(f"\n{figures.joined:.1%} of Limelight's events came joined with their neighbours.")
    print()
    print(frameworks_table(frameworks, frameworks_plan))
    print()
    print(pings_table(pings))
    print()
    print(neighbours_table(neighbours))
    if page is not None:
        print()
        print(page_table(page, page_plan))
    if options.write:
        target = ROOT / "docs" / "benchmarks.md"
        target.parent.mkdir(exist_ok=True)
        sections = (
            frameworks_section(frameworks, frameworks_plan),
            pings_section(pings, pings_plan),
            neighbours_section(neighbours, neighbours_plan),
            page_section(page, page_plan),
        )
        target.write_text(document(figures, plan, "\n".join(sections)))
        print(f"\nwritten: {target.relative_to(ROOT)}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
