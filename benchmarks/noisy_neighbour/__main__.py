"""`python -m benchmarks.noisy_neighbour`: runs this benchmark; `--write` puts its section into `docs/benchmarks.md`."""

import argparse

from benchmarks.noisy_neighbour.measurement import QUICK, NeighboursPlan, measure_neighbours
from benchmarks.noisy_neighbour.report import neighbours_section, neighbours_table
from benchmarks.report import log_progress, write_section


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.noisy_neighbour", description="Measure the effect of one user on another."
    )
    parser.add_argument("--quick", action="store_true", help="one minute instead of three")
    parser.add_argument("--write", action="store_true", help="write the section of docs/benchmarks.md")
    options = parser.parse_args()
    plan = QUICK if options.quick else NeighboursPlan()
    figures = measure_neighbours(plan, log_progress)
    print(neighbours_table(figures))
    if options.write:
        write_section("benchmarks.md", neighbours_section(figures, plan))


if __name__ == "__main__":
    main()
