"""What the understudy says in words: that it is a stand-in, what the tools returned, titles, a long text.

Pure. The improviser puts these into its replies.
"""

import re
from collections.abc import Sequence

from limelight.understudy.conversation import Got, Request
from limelight.understudy.kinds import kind_of
from limelight.understudy.scene import Scene

NOTICE = (
    "I am Limelight's understudy, a stand-in without a model: for a real one set LIMELIGHT_MODEL, OPENAI_BASE_URL "
    "and OPENAI_API_KEY."
)
END_OF_PLAN = "<end_plan>"
LINES, LETTERS = 5, 200
LONG_WORDS = 2000


def answer(scene: Scene, unmet: Sequence[str] = ()) -> str:
    """The answer: what the tools really returned, or what was asked if there were none.

    `unmet`: what the user wanted to provoke, and no tool on offer can do.
    """
    told = f"You asked for {' and '.join(unmet)}, but no tool on offer can do that." if unmet else ""
    return "\n\n".join(filter(None, (told, _told_of_the_rest(scene, bool(unmet)))))


def _told_of_the_rest(scene: Scene, said_something: bool) -> str:
    if scene.provoked("a long answer"):
        return long_answer(scene.topic)
    our_own = {tool.name for tool in scene.tools if kind_of(tool) in ("plan", "final")}
    results = [result for result in scene.request.results if result.name not in our_own]
    if not results:
        if said_something:
            return ""
        if scene.tools:
            return f"You said: {scene.question}. I call tools that change things or wait only if you name them."
        return f"You said: {scene.question or 'nothing'}. Without a tool on offer, that is all I can tell."
    heading = (
        f"This is what the tools returned about {scene.topic}:" if scene.words else "This is what the tools returned:"
    )
    return "\n\n".join([heading, *(quoted(result, scene.words) for result in results)])


def quoted(result: Got, words: Sequence[str] = ()) -> str:
    """The lines of a result that fit best, as a quotation: from the one with most of the words on."""
    written = [line for line in result.text.splitlines() if line.strip()]
    lines = [line[:LETTERS] + ("…" if len(line) > LETTERS else "") for line in written]
    start = _best_line(written, words) if len(lines) > LINES else 0
    shown = [f"> {line}" for line in lines[start : start + LINES]] or ["> (nothing)"]
    if len(lines) > LINES:
        shown.append(f"> … and {len(lines) - LINES} more lines")
    return "\n".join([f"**{result.name}**", "", *shown])


def _best_line(lines: Sequence[str], words: Sequence[str]) -> int:
    def hits(at: int) -> int:
        return sum(word.lower() in lines[at].lower() for word in words)

    return max(range(len(lines) - LINES + 1), key=hits)


def long_answer(topic: str) -> str:
    """About two thousand words, in sections, to see how long answers flow."""
    sentences = (
        f"There is much to be said about {topic}, and a stand-in says it without knowing any of it.",
        "A long answer shows how text flows: word by word, line by line, and never all at once.",
        "Somebody who scrolls up while it grows should stay where they are.",
        "Somebody who closes the window and comes back should find every word again.",
        "Numbers such as 1, 2 and 3, words in *italics* and `names in code` are here to be drawn well.",
        "What is cut in the middle goes on from there, with nothing lost and nothing doubled.",
    )
    parts: list[str] = [f"# A long answer about {topic}"]
    words = section = 0
    while words < LONG_WORDS:
        section += 1
        turned = [*sentences[section % 6 :], *sentences[: section % 6]]
        text = f"## Part {section}\n\n{' '.join(turned[:3])}\n\n- {turned[3]}\n- {turned[4]}\n\n{turned[5]}"
        words += len(text.split())
        parts.append(text)
    return "\n\n".join(parts)


def wants_plan(request: Request) -> bool:
    """smolagents asks for a plan in words, and for a new one later, then in one text with the last observation."""
    newest = request.results[-1].text if request.results else request.asked
    return END_OF_PLAN in newest or END_OF_PLAN in request.system


def plan_text(scene: Scene) -> str:
    """For agents that ask for a plan in words, before they begin and again on the way."""
    request = scene.request
    asked = f"{request.system}\n{request.asked}"
    tasks = re.findall(r"(?:here is your task|the following task):\s*```\n(.*?)\n\s*```", asked, re.S | re.I)
    about = " ".join(tasks[0].split())[:200] if tasks else scene.topic
    if request.results:
        seen = len(request.results)
        return (
            f"## 1. Updated facts survey\n### 1.1. Facts given in the task\n- The task: {about}\n"
            f"### 1.2. Facts that we have learned\n- What {seen} steps have returned\n"
            "### 1.3. Facts still to derive\n- The answer\n\n"
            f"## 2. Plan\n1. Quote what the tools returned.\n2. Give the answer.\n{END_OF_PLAN}"
        )
    return (
        f"## 1. Facts survey\n### 1.1. Facts given in the task\n- The task: {about}\n"
        "### 1.2. Facts to look up\n- What the tools return\n### 1.3. Facts to derive\n- The answer\n\n"
        f"## 2. Plan\n1. Call the tools that fit.\n2. Quote what they return.\n3. Give the answer.\n{END_OF_PLAN}"
    )


def chore(asked: str) -> str | None:
    """A short answer to what chat programs ask beside the conversation: titles, tags, follow-ups. None: it is none."""
    task = re.search(
        r"\b(?:generate|create|suggest|write|give|provide)\b[^\n]{0,80}\b(title|tags?|follow-?ups?)\b", asked, re.I
    )
    if task is None:
        return None
    kind = task[1].lower()
    said = re.findall(r"^(?:user|human):\s*(.+)$", asked, re.MULTILINE | re.IGNORECASE)
    words = re.findall(r"\w+", said[0] if said else "")[:5] or ["A", "talk", "with", "the", "understudy"]
    as_json = "json" in asked.lower()
    if kind == "title":
        title = " ".join(words)
        return f'{{"title": "{title}"}}' if as_json else title
    if kind.startswith("tag"):
        return '{"tags": ["understudy"]}' if as_json else "understudy"
    follow_up = "What else is there?"
    return f'{{"follow_ups": ["{follow_up}"]}}' if as_json else follow_up
