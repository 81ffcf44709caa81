"""The servers with which Limelight is compared, each a program, and the agents of the Limelight server."""
