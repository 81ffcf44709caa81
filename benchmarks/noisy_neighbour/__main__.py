"""`python -m benchmarks.noisy_neighbour`: measure this alone; `--write` puts its section into `docs/benchmarks.md`."""

import argparse
import sys

from benchmarks.noisy_neighbour.measure import QUICK, NeighboursPlan, measure_neighbours
from benchmarks.noisy_neighbour.report import neighbours_section, neighbours_table
from benchmarks.report import with_section
from benchmarks.server import ROOT


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.noisy_neighbour", description="What neighbours notice.")
    parser.add_argument("--quick", action="store_true", help="one minute instead of three")
    parser.add_argument("--write", action="store_true", help="write the section of docs/benchmarks.md")
    options = parser.parse_args()
    plan = QUICK if options.quick else NeighboursPlan()
    figures = measure_neighbours(plan, lambda line: print(line, file=sys.stderr, flush=True))
    print(neighbours_table(figures))
    if options.write:
        document = ROOT / "docs" / "benchmarks.md"
        document.write_text(with_section(document.read_text(), neighbours_section(figures, plan)))
        print(f"\nwritten: {document.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
