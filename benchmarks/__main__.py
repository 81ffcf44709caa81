"""`python -m benchmarks`: runs the benchmarks and prints their tables; `--write` also writes `docs/benchmarks.md`."""

import argparse

import msgspec

from benchmarks.frameworks.measurement import QUICK as QUICK_FRAMEWORKS
from benchmarks.frameworks.measurement import FrameworksPlan, measure_frameworks
from benchmarks.frameworks.report import frameworks_section, frameworks_table
from benchmarks.measurement import QUICK, Plan, measure
from benchmarks.noisy_neighbour.measurement import QUICK as QUICK_NEIGHBOURS
from benchmarks.noisy_neighbour.measurement import NeighboursPlan, measure_neighbours
from benchmarks.noisy_neighbour.report import neighbours_section, neighbours_table
from benchmarks.page.measurement import QUICK as QUICK_PAGE
from benchmarks.page.measurement import PagePlan, measure_page
from benchmarks.page.report import page_section, page_table
from benchmarks.pings.measurement import QUICK as QUICK_PINGS
from benchmarks.pings.measurement import PingsPlan, measure_pings
from benchmarks.pings.report import pings_section, pings_table
from benchmarks.report import document, log_progress, machine, table, write_document

ROUNDS = 5
"""Number of rounds of the framework benchmark for each repeat of the others, which takes longer than a round."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure the cost of a streamed event.")
    parser.add_argument("--quick", action="store_true", help="five minutes instead of seventeen")
    parser.add_argument("--repeats", type=int, choices=range(1, 51), metavar="1-50", help="how often to measure each")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md")
    options = parser.parse_args()
    plan, frameworks_plan = (QUICK, QUICK_FRAMEWORKS) if options.quick else (Plan(), FrameworksPlan())
    if options.repeats:
        plan = msgspec.structs.replace(plan, repeats=options.repeats)
        frameworks_plan = msgspec.structs.replace(frameworks_plan, rounds=ROUNDS * options.repeats)
    pings_plan = QUICK_PINGS if options.quick else PingsPlan()
    neighbours_plan = QUICK_NEIGHBOURS if options.quick else NeighboursPlan()
    page_plan = QUICK_PAGE if options.quick else PagePlan()
    figures = measure(plan, log_progress)
    pings = measure_pings(pings_plan, log_progress)
    neighbours = measure_neighbours(neighbours_plan, log_progress)
    frameworks = measure_frameworks(frameworks_plan, log_progress)
    page = measure_page(page_plan, log_progress)
    print(f"{machine()}\n\n{table(figures)}")
    if figures.joined:
        print(f"\n{figures.joined:.1%} of Limelight's events came joined with their neighbours.")
    tables = [frameworks_table(frameworks, frameworks_plan), pings_table(pings), neighbours_table(neighbours)]
    tables += [page_table(page, page_plan)] if page is not None else []
    print("".join(f"\n{text}\n" for text in tables), end="")
    if options.write:
        sections = (
            frameworks_section(frameworks, frameworks_plan),
            pings_section(pings, pings_plan),
            neighbours_section(neighbours, neighbours_plan),
            page_section(page, page_plan),
        )
        write_document("benchmarks.md", document(figures, plan, "\n".join(sections)))


if __name__ == "__main__":
    main()
