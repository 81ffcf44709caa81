"""What a server has to withstand, at length: `make test-faults`. `tests/faults` has what every change is held to.

A test ends in `leftovers.nothing_is_left`: what somebody received is in the log, every run has ended once, and a
process that has lived through the fault is as it was. `docs/faults.md` says which test holds which promise.
"""
