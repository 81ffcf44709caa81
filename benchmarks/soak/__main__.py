"""`python -m benchmarks.soak`, or `make soak`: ten minutes; `--write` also writes the figures to `docs/soak.md`.

It fails if a number was lost or doubled, a stream ended by itself, or memory grew beyond the limit.
"""

import argparse
import os
import sys

from benchmarks.report import log_progress, write_section
from benchmarks.server_process import raise_fd_limit
from benchmarks.soak.measurement import SoakPlan, measure_soak
from benchmarks.soak.report import limits_text, soak_section, soak_table


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.soak", description="Hold the highest rate of this machine for minutes."
    )
    minutes = float(os.environ.get("SOAK_MINUTES") or SoakPlan().minutes)
    parser.add_argument("--minutes", type=float, default=minutes, help="how long the rate is held; SOAK_MINUTES, or 10")
    parser.add_argument("--write", action="store_true", help="write the section of docs/soak.md")
    options = parser.parse_args()
    raise_fd_limit()
    plan = SoakPlan(minutes=options.minutes)
    log_progress(limits_text())
    figures = measure_soak(plan, log_progress)
    print(soak_table(figures, plan))
    if options.write:
        write_section("soak.md", soak_section(figures, plan))
    if faults := figures.faults():
        sys.exit("\n".join(f"soak: {fault}" for fault in faults))


if __name__ == "__main__":
    main()
