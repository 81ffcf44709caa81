"""`python -m benchmarks.floods`, or `make bench-floods`: flood a server, and measure what another user notices.

It fails if a limit does not hold. `make bench-floods` also writes `docs/attacks.md`.
"""

import argparse
import sys

from benchmarks.floods.catalog import FLOODS
from benchmarks.floods.measurement import QUICK_SECONDS, FloodPlan, measure_floods
from benchmarks.floods.report import DOCUMENT, catalog_section, catalog_table, floods_section, floods_table
from benchmarks.report import log_progress, write_section
from limelight.config.validation import suggestion


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.floods", description="Measure what a user notices of the floods of another user."
    )
    parser.add_argument("--list", action="store_true", help="list the floods, and measure nothing")
    parser.add_argument("--only", action="append", metavar="NAME", help="measure this flood; may be repeated")
    durations = f"{QUICK_SECONDS:g} seconds for each flood instead of {FloodPlan().seconds:g}"
    parser.add_argument("--quick", action="store_true", help=durations)
    parser.add_argument("--write", action="store_true", help=f"write the sections of docs/{DOCUMENT}")
    options = parser.parse_args()
    for name in options.only or ():
        if name not in FLOODS:
            parser.error(f"there is no flood {name!r}{suggestion(name, FLOODS)}; `--list` shows all")
    if options.write and (options.only or options.quick):
        parser.error("--write needs the complete measurement, without --only and --quick")
    if options.list:
        print(catalog_table())
    if options.write:
        write_section(DOCUMENT, catalog_section())
    if not options.list:
        seconds = QUICK_SECONDS if options.quick else FloodPlan().seconds
        measure(FloodPlan(seconds=seconds, names=tuple(options.only or FLOODS)), write=options.write)


def measure(plan: FloodPlan, *, write: bool) -> None:
    results = measure_floods(plan, log_progress)
    print(floods_table(results.figures))
    if write:
        write_section(DOCUMENT, floods_section(results, plan))
    if faults := results.faults():
        sys.exit("\n".join(f"floods: {fault}" for fault in faults))


if __name__ == "__main__":
    main()
