"""What all these tests share."""

import logging

import pytest


@pytest.fixture(autouse=True)
def quiet_expected_errors() -> None:
    """Runs that fail on purpose write their story to the log; tests look at what clients get."""
    logging.getLogger("limelight.runs.engine").setLevel(logging.CRITICAL)
