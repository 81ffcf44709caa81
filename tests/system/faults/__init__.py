"""Fault injection: servers that are killed, flooded, starved and attacked.

A test ends with `invariants.nothing_is_left`: what a viewer received is in the log, every run has ended once, and a
process that survived the fault has released its resources. `docs/faults.md` names the requirements for each fault.
"""
