"""`python -m limelight` is `limelight`."""

from limelight.cli import main

main()
