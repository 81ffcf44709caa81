"""Plans of the understudy: the steps of a list of todos, and plans in words, as smolagents asks for them.

Pure. Recipes put the steps into whatever shape a tool has for them; the improviser says the plans in words.
"""

import re

from limelight.understudy.conversation import Asked, Request
from limelight.understudy.situation import Scene
from limelight.understudy.tool_kinds import kind_of
from limelight.understudy.tool_results import findings
from limelight.understudy.topic import finding_out, upper

END_OF_PLAN = "<end_plan>"


def steps_of(scene: Scene) -> list[str]:
    """Three steps: to look, to find out, to answer."""
    kinds = {kind_of(tool) for tool in scene.tools}
    look = "Look at which files there are" if "list" in kinds else "See what there is"
    return [look, goal_of(scene), "Put the answer together"]


def goal_of(scene: Scene) -> str:
    if scene.words:
        return upper(finding_out(scene.topic))
    return f"Work out {scene.task}" if scene.task else "Try what fits"


def wants_plan(request: Request) -> bool:
    """smolagents asks for a plan in words, and for a new one later, then in one text with the last observation."""
    newest = request.results[-1].text if request.results else request.asked
    return END_OF_PLAN in newest or END_OF_PLAN in request.system


def plan_text(scene: Scene) -> str:
    """For agents that ask for a plan in words, before they begin and again on the way."""
    request = scene.request
    asked = f"{request.system}\n{request.asked}"
    tasks = re.findall(r"(?:here is your task|the following task):\s*```\n(.*?)\n\s*```", asked, re.S | re.I)
    task = " ".join(tasks[0].split())[:200] if tasks else scene.question
    about = Scene(Request(model="", entries=(Asked(task),)), ())
    goal = goal_of(about)
    if request.results:
        return (
            f"## 1. Updated facts survey\n### 1.1. Facts given in the task\n- The task: {task}\n"
            f"### 1.2. Facts that we have learned\n{_learned(scene)}\n"
            f"### 1.3. Facts still to derive\n- Which of it answers the question\n\n"
            f"## 2. Plan\n1. Choose what fits the question best.\n2. Give the answer, with its sources.\n{END_OF_PLAN}"
        )
    return (
        f"## 1. Facts survey\n### 1.1. Facts given in the task\n- The task: {task}\n"
        f"### 1.2. Facts to look up\n- {upper(about.topic) or 'What the tools return'}\n"
        "### 1.3. Facts to derive\n- Which of it answers the question\n\n"
        f"## 2. Plan\n1. {goal}, with the tools that fit.\n2. Have a closer look at what they return, in a few lines "
        f"of code or by reading on.\n3. Give the answer, with its sources.\n{END_OF_PLAN}"
    )


def _learned(scene: Scene) -> str:
    """The titles of what was found so far."""
    titles = [passage.title for one in findings(scene) for passage in one.passages if passage.title]
    if not titles:
        count = len(scene.request.results)
        return f"- What {count} step{'s'[: count > 1]} returned"
    return "\n".join(f"- There is something under “{title}”" for title in list(dict.fromkeys(titles))[:4])
