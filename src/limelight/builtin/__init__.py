"""The agents that come with Limelight, each small enough to be read as an example of its framework.

`catalogue` lists them. A framework is imported in the file of an agent only, and that only when the agent is opened.
"""
