"""What Limelight adds to a framework: the same agent, alone and through Limelight, in one process and taking turns."""
