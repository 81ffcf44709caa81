"""Benchmarks of Limelight: `make bench` runs them, `make soak` runs the soak test."""
