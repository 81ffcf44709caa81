"""What a server has to withstand, at length: `make test-faults`. `tests/faults` has what every change is held to.

Each test ends in `leftovers.nothing_is_left`: what somebody received is in the log, every run has ended once, and the
process is as it was. `docs/faults.md` says which test holds which promise.
"""
