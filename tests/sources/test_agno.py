"""Agno: the scenarios that every source passes, and what is its own."""

from collections.abc import AsyncIterator, Mapping
from typing import ClassVar

import pytest

from limelight.sources.agno import AgnoSource
from limelight.sources.base import Source
from tests.sources.agno_cast import CASES, close_models
from tests.sources.conformance import Case
from tests.sources.suite import SourceSuite


@pytest.fixture(autouse=True)
async def _closed() -> AsyncIterator[None]:  # pyright: ignore[reportUnusedFunction]
    yield
    await close_models()


class TestAgno(SourceSuite):
    source: ClassVar[type[Source]] = AgnoSource
    cases: ClassVar[Mapping[str, Case]] = CASES
