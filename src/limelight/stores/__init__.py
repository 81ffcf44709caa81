"""Stores of sessions, runs and records. `base` defines the contract; `memory` and `sqlite` implement it."""
