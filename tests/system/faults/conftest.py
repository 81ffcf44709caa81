"""Fixtures of the fault tests."""

import logging

import pytest


@pytest.fixture(autouse=True)
def quiet_expected_errors() -> None:
    """Do not log the errors of runs that fail on purpose."""
    logging.getLogger("limelight.runs.engine").setLevel(logging.CRITICAL)
