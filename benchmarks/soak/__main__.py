"""`python -m benchmarks.soak`, or `make soak`: ten minutes; `--write` puts the figures into `docs/soak.md`.

It fails if anything was lost or doubled, a stream broke off, or memory grew beyond the bound.
"""

import argparse
import os
import sys

from benchmarks.report import with_section
from benchmarks.server import ROOT
from benchmarks.soak.fd_limit import raise_file_limit
from benchmarks.soak.measure import SoakPlan, measure_soak
from benchmarks.soak.report import about, soak_section, soak_table


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description="As much as possible, for long.")
    minutes = float(os.environ.get("SOAK_MINUTES") or SoakPlan().minutes)
    parser.add_argument("--minutes", type=float, default=minutes, help="how long the rate is held; SOAK_MINUTES, or 10")
    parser.add_argument("--write", action="store_true", help="write the section of docs/soak.md")
    options = parser.parse_args()
    raise_file_limit()
    plan = SoakPlan(minutes=options.minutes)
    print(about(), file=sys.stderr, flush=True)
    figures = measure_soak(plan, lambda line: print(line, file=sys.stderr, flush=True))
    print(soak_table(figures, plan))
    if options.write:
        document = ROOT / "docs" / "soak.md"
        document.write_text(with_section(document.read_text(), soak_section(figures, plan)))
        print(f"\nwritten: {document.relative_to(ROOT)}")
    if faults := figures.faults():
        sys.exit("\n".join(f"soak: {fault}" for fault in faults))


if __name__ == "__main__":
    main()
