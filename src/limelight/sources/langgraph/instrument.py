"""Access to internals of LangGraph and LangChain: nodes that block the event loop, running tools, current namespace.

This module is imported to select the source of a target, so only its functions import LangChain.
"""

import copy
from functools import partial
from types import FrameType
from typing import Any

from limelight.sources.langgraph.stream_parts import Namespace, parent_namespace

IN_THREAD = "run_in_executor.<locals>.wrapper"
"""Qualified name of LangChain's function that wraps all code it runs in a thread."""


def with_threaded_nodes(graph: Any) -> Any:
    """Return the graph, or a copy whose nodes with only a sync function run in threads instead of on the event loop.

    Hooks of a middleware may be such nodes. Subgraphs that are nodes are included; a graph inside of a tool cannot be
    found.
    """
    nodes = {name: _threaded_node(node) for name, node in graph.nodes.items()}
    return graph.copy({"nodes": nodes}) if any(nodes[name] is not node for name, node in graph.nodes.items()) else graph


def _threaded_node(node: Any) -> Any:
    bound = getattr(node, "bound", None)
    threaded = _threaded_runnable(bound)
    return node if threaded is bound else node.copy({"bound": threaded})


def _threaded_runnable(runnable: Any) -> Any:
    if hasattr(runnable, "nodes") and hasattr(runnable, "astream") and hasattr(runnable, "copy"):
        return with_threaded_nodes(runnable)
    if type(runnable).__name__ != "RunnableCallable" or runnable.func is None or runnable.afunc is not None:
        return runnable
    from langchain_core.runnables.config import run_in_executor

    threaded = copy.copy(runnable)
    threaded.afunc = partial(run_in_executor, None, runnable.func)  # keeps the context with LangGraph's config
    return threaded


def tool_of_frame(frame: FrameType) -> str | None:
    """Return the name of the tool that a stack frame runs.

    The name is "" for another function that LangChain runs in a thread, and None for any other frame.
    """
    if frame.f_code.co_qualname == IN_THREAD:
        return ""
    tool = frame.f_locals.get("self") if frame.f_code.co_name in ("invoke", "run", "_run") else None
    is_tool = any(base.__name__ == "BaseTool" for base in type(tool).__mro__)
    return str(getattr(tool, "name", "") or "") if is_tool else None


def current_namespace() -> Namespace:
    """Return the namespace of the graph that the current code belongs to, from LangChain's context variable."""
    from langchain_core.runnables.config import var_child_runnable_config

    config: Any = var_child_runnable_config.get() or {}
    return parent_namespace(str(config.get("configurable", {}).get("checkpoint_ns") or ""))
