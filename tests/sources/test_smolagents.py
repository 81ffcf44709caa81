"""smolagents, played by real agents against the understudy: the scenarios that every source plays, and its own."""

from limelight.sources.smolagents import SmolagentsSource
from tests.sources.smolagents_cast import CASES
from tests.sources.suite import SourceSuite


class TestSmolagents(SourceSuite):
    source = SmolagentsSource
    cases = CASES
