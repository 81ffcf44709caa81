"""The demo agent among the others: a plain function, which needs no model and no framework."""

from collections.abc import Callable
from typing import Any

from limelight.builtin.agent_config import Kit
from limelight.builtin.demo import agent


def demo(_: Kit) -> Callable[..., Any]:
    return agent.demo
