"""`python -m benchmarks.page`: runs only this benchmark; `--write` puts its section into `docs/benchmarks.md`."""

import argparse

from benchmarks.page.measurement import QUICK, PagePlan, measure_page
from benchmarks.page.report import page_section, page_table
from benchmarks.report import log_progress, write_section


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description="Measure the speed of the page.")
    parser.add_argument("--quick", action="store_true", help="two minutes instead of four")
    parser.add_argument("--write", action="store_true", help="write the section of docs/benchmarks.md")
    options = parser.parse_args()
    plan = QUICK if options.quick else PagePlan()
    figures = measure_page(plan, log_progress)
    if figures is None:
        raise SystemExit(2)
    print(page_table(figures, plan))
    if options.write:
        write_section("benchmarks.md", page_section(figures, plan))


if __name__ == "__main__":
    main()
