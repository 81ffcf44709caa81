"""What of a graph goes on after Stop: ordinary functions, which LangChain runs in threads. Known by LangChain's names.

A tool is called by its name there; a node or a model that is an ordinary function has none that people know.
"""

from types import FrameType

IN_THREAD = "run_in_executor.<locals>.wrapper"
"""What LangChain puts around everything that it runs in a thread."""


def name_at_work(frame: FrameType) -> str | None:
    """The name of the tool that a frame runs, "" for another step of the graph."""
    if frame.f_code.co_qualname == IN_THREAD:
        return ""
    tool = frame.f_locals.get("self") if frame.f_code.co_name in ("invoke", "run", "_run") else None
    is_tool = any(base.__name__ == "BaseTool" for base in type(tool).__mro__)
    return str(getattr(tool, "name", "") or "") if is_tool else None
