"""Stores keep sessions, runs and records. `base` is the contract; `memory` and `sqlite` implement it."""
