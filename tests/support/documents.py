"""The documents of this repository."""

from pathlib import Path

ROOT = Path(__file__).parents[2]


DOCS = ROOT / "docs"


DOCUMENTS = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])


def read(name: str) -> str:
    return (ROOT / name).read_text()


def by_name(path: Path) -> str:
    return str(path.relative_to(ROOT))
