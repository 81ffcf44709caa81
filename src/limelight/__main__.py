"""Runs the command line: `python -m limelight` is the same as `limelight`."""

from limelight.cli import main

main()
