"""What belongs to an answer besides its text: its title above it, its sources below. Pure; both views use it."""

from limelight.cli.view.sanitize import one_line
from limelight.cli.view.state import Story

LONGEST = 2000
"""Characters of an address. None is cut in practice, because one that is cut leads nowhere."""


def title_of(story: Story) -> str:
    return one_line(story.title, 200)


def late_title(story: Story) -> list[str]:
    """The title of an answer whose text was there before it."""
    return [f"Title: {title_of(story)}"] if story.title else []


def source_lines(story: Story) -> list[str]:
    """The sources as a list, if there are any."""
    return ["Sources:", *(f"- {one_line(source, LONGEST)}" for source in story.sources)] if story.sources else []
