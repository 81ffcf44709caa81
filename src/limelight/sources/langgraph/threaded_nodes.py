"""Nodes that are ordinary functions only, as those of LangChain's middleware may be: LangGraph would run them on the
event loop, where they would hold up everybody. Here they run in threads, as other functions of a graph do.

On copies: the given graph stays as it is. Graphs that stand as nodes in the graph are looked through too; one that is
hidden in a tool is not, as nobody can tell that it is there.

Knows LangChain, so it is loaded only once there is a graph.
"""

import copy
from functools import partial
from typing import Any

from langchain_core.runnables.config import run_in_executor


def off_loop(graph: Any) -> Any:
    """The graph itself, or a copy of it in which no node blocks the loop."""
    nodes = {name: _moved(node) for name, node in graph.nodes.items()}
    return graph.copy({"nodes": nodes}) if any(nodes[name] is not node for name, node in graph.nodes.items()) else graph


def _moved(node: Any) -> Any:
    bound = _awaitable(getattr(node, "bound", None))
    return node if bound is getattr(node, "bound", None) else node.copy({"bound": bound})


def _awaitable(runnable: Any) -> Any:
    if hasattr(runnable, "nodes") and hasattr(runnable, "astream") and hasattr(runnable, "copy"):
        return off_loop(runnable)
    if type(runnable).__name__ != "RunnableCallable" or runnable.func is None or runnable.afunc is not None:
        return runnable
    made = copy.copy(runnable)
    made.afunc = partial(run_in_executor, None, runnable.func)  # with the context, in which LangGraph keeps the config
    return made
