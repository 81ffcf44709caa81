"""The built-in agents of Limelight, and their tools.

`catalogue` lists the agents without importing a framework: the module of an agent is imported when the agent is opened.
"""
