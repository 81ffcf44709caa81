"""`agno`: one agent with the session's files and a calculator, which asks a person before tools that are named."""

import json
from importlib import import_module
from typing import Any

from limelight.builtin.agent_config import Kit
from limelight.builtin.agno_common import agno_model, asking
from limelight.builtin.calculator import calculate
from limelight.builtin.file_tools import Files
from limelight.builtin.wait_tool import wait

PROMPT = """You answer questions with the files of the workspace. List them first and read those that fit.
Use calculate for every sum. Say in the answer which file it comes from."""


def agent(kit: Kit) -> Any:
    make: Any = import_module("agno.agent").Agent
    files = Files(samples=kit.samples)

    def list_files() -> str:
        """List the files of the workspace."""
        return json.dumps(files.list_files(), ensure_ascii=False)

    def delete_file(path: str) -> str:
        """Delete a file of the workspace.

        Args:
            path: The name of the file, as list_files gives it.
        """
        return files.delete_file(path)

    return make(
        name="agno",
        model=agno_model(kit),
        instructions=PROMPT,
        tools=asking(kit, list_files, files.read_file, files.write_file, delete_file, calculate, wait),
        telemetry=False,
    )
