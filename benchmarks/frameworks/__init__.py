"""The cost of a token with each framework, alone and through Limelight."""
