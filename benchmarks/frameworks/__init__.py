"""Benchmark of the frameworks: the CPU time of a token with each framework, alone and through Limelight."""
