"""`python -m benchmarks`: measure and print the table; `--write` also writes `docs/benchmarks.md`."""

import argparse
import sys

import msgspec

from benchmarks.measure import QUICK, Plan, measure
from benchmarks.report import document, machine, table
from benchmarks.server import ROOT


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="What a streamed event costs.")
    parser.add_argument("--quick", action="store_true", help="half a minute instead of some minutes")
    parser.add_argument("--repeats", type=int, choices=range(1, 51), metavar="1-50", help="how often to measure each")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md")
    options = parser.parse_args()
    plan = QUICK if options.quick else Plan()
    if options.repeats:
        plan = msgspec.structs.replace(plan, repeats=options.repeats)
    figures = measure(plan, say=lambda line: print(line, file=sys.stderr, flush=True))
    print(machine())
    print()
    print(table(figures))
    if figures.joined:
        print(f"\n{figures.joined:.1%} of Limelight's events reached a lagging client joined with their neighbours.")
    if options.write:
        page = ROOT / "docs" / "benchmarks.md"
        page.parent.mkdir(exist_ok=True)
        page.write_text(document(figures, plan))
        print(f"\nwritten: {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
