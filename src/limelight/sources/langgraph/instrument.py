"""Uses internals of LangGraph and LangChain: nodes that block the event loop, running tools, the current task.

This module is imported to select the source of a target, so only its functions import LangChain.
"""

import copy
from functools import partial
from types import FrameType
from typing import Any

from limelight.sources.langgraph.stream_parts import STRUCTURED, Namespace, Written, parent_namespace, task_in, task_of
from limelight.sources.langgraph.tool_runs import ToolTasks

IN_THREAD = "run_in_executor.<locals>.wrapper"
"""Qualified name of the LangChain function through which all code runs that LangChain moves to a thread."""
NO_STREAM = "nostream"
"""LangGraph's tag of runs that it does not stream."""
IGNORED_CALLBACKS = ("ignore_llm", "ignore_chain", "ignore_retriever", "ignore_custom_event")
"""Attributes of a LangChain callback that is not called for each token, and neither for nodes and retrievers."""
STRUCTURED_OPTION = "ls_structured_output_format"
"""The option of a model run with which LangChain reports `with_structured_output`, for all providers and methods."""
RUNTIME_KEY = "__pregel_runtime"
"""The key of `configurable` under which LangGraph takes the runtime that a server prepares for a run."""
PAUSES = ("GraphInterrupt", "GraphDrained")
"""LangGraph's errors that pause a tool, which then runs again."""


def with_threaded_nodes(graph: Any) -> Any:
    """Return the graph, or a copy whose sync-only nodes run in threads instead of on the event loop.

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
    """Return the name of the LangChain tool that a Python stack frame is running.

    The name is "" for another function that LangChain runs in a thread, and None for any other frame.
    """
    if frame.f_code.co_qualname == IN_THREAD:
        return ""
    tool = frame.f_locals.get("self") if frame.f_code.co_name in ("invoke", "run", "_run") else None
    is_tool = any(base.__name__ == "BaseTool" for base in type(tool).__mro__)
    return str(getattr(tool, "name", "") or "") if is_tool else None


def subgraph_nodes(graph: Any, path: tuple[str, ...] = ()) -> frozenset[tuple[str, ...]]:
    """Return the paths of a graph's nodes that are graphs themselves, as names of nodes from the main graph on."""
    found: set[tuple[str, ...]] = set()
    for name, node in graph.nodes.items():
        bound = getattr(node, "bound", None)
        if hasattr(bound, "nodes") and hasattr(bound, "astream"):
            found |= {(*path, name), *subgraph_nodes(bound, (*path, name))}
    return frozenset(found)


def current_task() -> tuple[Namespace, str]:
    """Return the LangGraph namespace and the task in which the current code runs, from LangChain's context variable."""
    from langchain_core.runnables.config import var_child_runnable_config

    config: Any = var_child_runnable_config.get() or {}
    checkpoint_ns = str(config.get("configurable", {}).get("checkpoint_ns") or "")
    return parent_namespace(checkpoint_ns), task_of(checkpoint_ns.rpartition("|")[2])


def with_written_tasks(config: dict[str, Any], store: Any) -> dict[str, Any]:
    """Return a copy of a run's config with which values that its code writes to the stream arrive as `Written`.

    LangGraph merges a runtime in the config with that of the run. Without it, what a task writes is streamed with the
    namespace of its graph only. `store` is the store of the graph, which LangGraph takes from this runtime.
    """
    from langgraph.runtime import Runtime

    class RuntimeWithTasks(Runtime[Any]):
        def merge(self, other: Any) -> Any:
            merged = super().merge(other)
            write = merged.stream_writer
            return merged.override(stream_writer=lambda data: write(Written(current_task()[1], data)))

    return {**config, "configurable": {**config["configurable"], RUNTIME_KEY: RuntimeWithTasks(store=store)}}


def tool_task_recorder(tool_tasks: ToolTasks) -> Any:
    """Return a LangChain callback that records the graph task of each event of a tool, in LangGraph's order.

    It mirrors the rules of LangGraph's own callback for the stream mode `tools`: which runs are reported, and under
    which id.
    """
    from langchain_core.callbacks import BaseCallbackHandler

    class ToolTaskRecorder(BaseCallbackHandler):
        run_inline = True

        def __init__(self) -> None:
            self._runs: dict[Any, tuple[str, str]] = {}

        def on_tool_start(self, serialized: Any, input_str: str, *, run_id: Any, **details: Any) -> None:
            metadata: dict[str, Any] = details.get("metadata") or {}
            if not metadata or NO_STREAM in (details.get("tags") or ()):
                return
            call = self._runs[run_id] = (str(details.get("tool_call_id") or run_id), task_in(metadata))
            tool_tasks.record("tool-started", *call)

        def on_tool_end(self, output: Any, *, run_id: Any, **details: Any) -> None:
            if (call := self._runs.pop(run_id, None)) is not None:
                tool_tasks.record("tool-finished", *call)

        def on_tool_error(self, error: BaseException, *, run_id: Any, **details: Any) -> None:
            call = self._runs.pop(run_id, None)
            if call is not None and type(error).__name__ not in PAUSES:
                tool_tasks.record("tool-error", *call)

    for ignored in (*IGNORED_CALLBACKS, "ignore_chat_model"):
        setattr(ToolTaskRecorder, ignored, True)
    return ToolTaskRecorder()


def structured_output_marker() -> Any:
    """Return a LangChain callback that marks the metadata of model runs of `with_structured_output`.

    LangGraph streams each message of a model run with this metadata, but without the options of the run.
    """
    from langchain_core.callbacks import BaseCallbackHandler

    class StructuredOutputMarker(BaseCallbackHandler):
        run_inline = True

        def on_chat_model_start(self, serialized: Any, messages: Any, **details: Any) -> None:
            metadata: dict[str, Any] = details.get("metadata") or {}
            if STRUCTURED_OPTION in (details.get("options") or ()):
                metadata[STRUCTURED] = True

    for ignored in (*IGNORED_CALLBACKS, "ignore_agent"):
        setattr(StructuredOutputMarker, ignored, True)
    return StructuredOutputMarker()
