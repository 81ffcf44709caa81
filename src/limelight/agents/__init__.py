"""The agents of a server: targets and settings become the agents on offer."""
