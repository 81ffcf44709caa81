"""`python -m benchmarks.page`: measure the page alone; `--write` puts its section into `docs/benchmarks.md`."""

import argparse
import sys

from benchmarks.page.measure import QUICK, PagePlan, measure_page
from benchmarks.page.report import page_section, page_table
from benchmarks.report import with_section
from benchmarks.server import ROOT


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description="How fast the page is.")
    parser.add_argument("--quick", action="store_true", help="two minutes instead of four")
    parser.add_argument("--write", action="store_true", help="write the section of docs/benchmarks.md")
    options = parser.parse_args()
    plan = QUICK if options.quick else PagePlan()
    figures = measure_page(plan, lambda line: print(line, file=sys.stderr, flush=True))
    if figures is None:
        raise SystemExit(2)
    print(page_table(figures, plan))
    if options.write:
        document = ROOT / "docs" / "benchmarks.md"
        document.write_text(with_section(document.read_text(), page_section(figures, plan)))
        print(f"\nwritten: {document.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
