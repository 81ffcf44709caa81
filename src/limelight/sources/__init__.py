"""Sources: adapters that run an agent of a framework and translate its stream into Events.

Each framework has its own package (`langgraph`, `agno`, `smolagents`). `function` runs plain functions, and
`lazy_agents` delays the creation of an agent. The other modules are shared by the sources.
"""
