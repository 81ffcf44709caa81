"""What is asked beside the conversation, or only to see how it looks: titles, tags, follow-ups, a long text.

Pure. The improviser and the answer use it.
"""

import re

LONG_WORDS = 2000


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
