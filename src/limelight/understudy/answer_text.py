"""What the understudy answers: a short document made of what the tools really returned.

First what was done and worked out, then the sentences that fit the question best, what else was found, and where it
comes from. Pure. The improviser puts it into its replies.
"""

import re
from collections.abc import Iterable, Sequence

from limelight.understudy.action_text import deed, failure, label, printed, ranked, shown_sum
from limelight.understudy.programs import is_program
from limelight.understudy.sentences import Ear, cut, prose, tokens
from limelight.understudy.side_tasks import long_answer
from limelight.understudy.situation import MEMBER_FIELDS, TASK_FIELDS, Scene
from limelight.understudy.tool_results import ROWS, Finding, Passage, Row, findings, markdown_table
from limelight.understudy.topic import content_words, listed, topic_of, upper

NOTICE = (
    "I am Limelight's understudy, a stand-in without a model: for a real one set LIMELIGHT_MODEL, OPENAI_BASE_URL "
    "and OPENAI_API_KEY."
)
NOTHING = "I found nothing"
MOST_BULLETS = 4


def answer(scene: Scene, unmet: Sequence[str] = ()) -> str:
    """The answer. `unmet`: what the user wanted to provoke, and no tool on offer can do."""
    told = f"You asked for {' and '.join(unmet)}, but no tool on offer can do that." if unmet else ""
    return _joined(told, _told_of_the_rest(scene, bool(unmet)))


def _told_of_the_rest(scene: Scene, said_something: bool) -> str:
    if scene.provoked("a long answer"):
        return long_answer(scene.topic or "this")
    found = findings(scene)
    if found:
        return Composed(scene, found).text
    return "" if said_something else _without_tools(scene)


def _without_tools(scene: Scene) -> str:
    said = f"You said: “{scene.question}”" if scene.question else "You said nothing"
    names = [f"`{tool.name}`" for tool in scene.tools if tool.name != "final_answer"]
    if not names:
        return f"{said}. Without a tool on offer, that is all I can tell."
    about = f"about {shown_sum(scene.topic)}" if scene.topic else "to do"
    return (
        f"{NOTHING} {about} with the tools that I have, which {'is' if len(names) == 1 else 'are'} "
        f"{listed(names)}. Those that change things or wait I call only if you name them."
    )


def abilities(scene: Scene) -> str:
    """What there is to ask for, for whoever asks about nothing."""
    names = [f"`{tool.name}`" for tool in scene.tools if tool.name != "final_answer"]
    return f"I can use {listed(names)} here: ask me about something, and I see what they bring." if names else ""


class Composed:
    """An answer in the making: what was said already and which places it came from."""

    def __init__(self, scene: Scene, found: Sequence[Finding]) -> None:
        self._scene = scene
        self._good = [one for one in found if not one.error]
        texts = [passage.text for one in self._good for passage in one.passages]
        self._ear = Ear(scene.words, (sentence for text in texts for sentence in prose(text)))
        self._sources: dict[str, str] = {}
        helpers = [one for one in self._good if one.kind == "delegate"]
        told = _joined(
            " ".join(self._deeds()),
            *(self._reports(helpers) if len(helpers) > 1 else self._findings()),
            *self._data(),
            *self._plain(),
        )
        self._failures = " ".join(dict.fromkeys(failure(one) for one in found if one.error))
        asked = re.search(r"\b(?:tools|can you do|do you do|you work)\b", scene.question, re.IGNORECASE)
        told = _joined(abilities(scene) if asked and not scene.is_delegated else "", told)
        self.text = _joined(told or self._nothing(), self._files(bool(told)), self._failures, self._where_from())

    def _deeds(self) -> Iterable[str]:
        for one in self._good:
            if one.kind in ("write", "wait", "calculate"):
                yield deed(one, self._scene)
            elif is_program(one.code) and (said := printed(one, self._scene)):
                yield said

    def _findings(self) -> Iterable[str]:
        """The best excerpt, then one of each other place that has something to say about it."""
        scene = self._scene
        places = [(one, passage) for one in self._good for passage in one.passages if self._is_prose(one, passage)]
        best = sorted(places, key=lambda place: -self._fit(*place))
        count, letters = (4, 450) if scene.is_delegated else (3, 360)
        lead, bullets, reporter = "", list[str](), ""
        for one, passage in best:
            if not scene.words and not scene.asks_for(passage.place or "-"):
                continue
            if not lead:
                lead = self._excerpt(one, passage, count, letters)
                reporter = _who(one) if lead and one.kind == "delegate" else ""
            elif passage.place in self._sources or scene.is_delegated or len(bullets) == MOST_BULLETS:
                continue
            elif self._is_about(one, passage):
                said = self._excerpt(one, passage, 2, 240)
                bullets += [f"- **{_label(one, passage)}**: {said}"] if said else []
        yield lead
        if bullets:
            yield "\n".join(["### What I found", "", *bullets])
        if reporter and not bullets:
            yield f"I asked the {reporter} about it and follow the report."

    def _is_prose(self, one: Finding, passage: Passage) -> bool:
        quotable = one.kind != "other" or bool(passage.place)
        return bool(passage.text) and quotable and not is_program(one.code) and NOTHING not in passage.text[:80]

    def _fit(self, one: Finding, passage: Passage) -> float:
        """How well it fits; of two that fit as well, the one that has more to say."""
        sentences = prose(passage.text)
        best = max((self._ear.score(sentence.words) for sentence in sentences), default=0)
        title = self._ear.score(tokens(f"{passage.title} {passage.place}"))
        return best + title / 2 + min(len(sentences), 6) / 10 + (0.3 if one.kind == "read" else 0)

    def _is_about(self, one: Finding, passage: Passage) -> bool:
        """One word of a question is not enough for a page that a search happened to give."""
        hits = self._ear.hits(tokens(f"{passage.title} {passage.text}"))
        return one.kind == "delegate" or hits * 2 > len(self._scene.words)

    def _excerpt(self, one: Finding, passage: Passage, count: int, letters: int) -> str:
        titled = self._ear.hits(tokens(f"{passage.title} {passage.place}")) or int(one.kind == "delegate")
        said = self._ear.excerpt(prose(passage.text), titled, count, letters)
        if said:
            self._cite(passage, *(one.passages[1:] if one.kind == "delegate" else ()))
        return said

    def _reports(self, helpers: Sequence[Finding]) -> Iterable[str]:
        """What two helpers said, each under its own heading."""
        topics = [topic_of(_task(one)) for one in helpers]
        who = [_who(one) for one in helpers]
        same = len(set(topics)) < len(topics)
        headings = topics if not same else who if len(set(who)) == len(who) else ("one helper", "another helper")
        topic = listed(topics) if not same else shown_sum(self._scene.topic)
        looked = f" looked into {topic}; this is what they" if topic else ""
        yield f"{upper(_number(len(helpers)))} helpers{looked} report."
        for one, heading, topic in zip(helpers, headings, topics, strict=False):
            report = one.passages[0].text
            ear = Ear(content_words(topic), prose(report))
            said = ear.excerpt(prose(report), 1, 3, 360)
            self._cite(*one.passages[1:])
            yield f"### {upper(heading)}\n\n{said or cut(report, 360)}"

    def _data(self) -> Iterable[str]:
        for one in self._good:
            passage = one.passages[0] if one.passages else Passage("")
            table = one.table or (markdown_table(passage.text) if self._wants_table(one, passage) else ())
            if table:
                said = ranked(table, self._scene) or f"This is the table of {_label(one, passage)}:"
                yield f"{said}\n\n{_shown(table)}"
                self._cite(passage)
            elif one.facts:
                lines = [f"- {f'**{name}**: ' if name else ''}{value}" for name, value in one.facts]
                yield "\n".join([f"`{one.name}` returned:", "", *lines])

    def _wants_table(self, one: Finding, passage: Passage) -> bool:
        if one.kind not in ("read", "code"):
            return False
        header = " ".join(markdown_table(passage.text)[:1][0]) if markdown_table(passage.text) else ""
        return bool(self._ear.hits(tokens(header)))

    def _plain(self) -> Iterable[str]:
        """What tools said that we know nothing about, and programs: quoted, but briefly."""
        for one in self._good:
            if is_program(one.code) and not printed(one, self._scene):
                lines = [f"- {cut(line, 160)}" for line in one.text.splitlines() if line.strip()]
                yield "\n".join(["A few lines of Python looked for the words of the question:", "", *lines[:8]])
            elif self._is_plain(one):
                yield _quoted(one)

    def _is_plain(self, one: Finding) -> bool:
        if one.kind == "code":
            places = any(passage.place for passage in one.passages)
            return bool(one.text) and not places and not is_program(one.code) and not self._sources
        return one.kind == "other" and bool(one.passages) and not one.passages[0].place

    def _files(self, said_something: bool) -> str:
        """Which files there are, if that was asked or if there is nothing else to tell."""
        names = list(dict.fromkeys(name.lstrip("/") for one in self._good if one.kind == "list" for name in one.names))
        asked = re.search(r"\b(?:files?|folders?|director(?:y|ies)|workspace|listing)\b", self._scene.question, re.I)
        if not names or (said_something and not (asked and not self._sources)):
            return ""
        shown = [f"`{name}`" for name in names[:12]]
        more = [f"{len(names) - 12} more"] if len(names) > 12 else []
        count = "is one file" if len(names) == 1 else f"are {_number(len(names))} files"
        return f"There {count}: {listed([*shown, *more])}."

    def _nothing(self) -> str:
        if not self._good:
            return ""
        if not self._scene.topic:
            return abilities(self._scene)
        asked = [_who(one) for one in self._good if one.kind == "delegate"]
        also = f", and neither did the {asked[0]}" if asked else ""
        return f"{NOTHING} about {shown_sum(self._scene.topic)}{also}."

    def _cite(self, *passages: Passage) -> None:
        for passage in passages:
            if passage.place and passage.place not in self._sources:
                self._sources[passage.place] = passage.title

    def _where_from(self) -> str:
        shown = [_source(place, title) for place, title in self._sources.items()][:8]
        if not shown:
            return ""
        if len(shown) == 1 or self._scene.is_delegated:
            return f"Source{'s' if len(shown) > 1 else ''}: {', '.join(shown)}"
        return "\n".join(["### Sources", "", *(f"- {one}" for one in shown)])


def _source(place: str, title: str) -> str:
    if not re.match("https?://", place):
        return f"`{place}`"
    safe = place.replace("(", "%28").replace(")", "%29").replace(" ", "%20")
    named = re.sub(r"[\[\]]", "", title)
    return f"[{named}]({safe})" if named and title != place else f"<{safe}>"


def _label(one: Finding, passage: Passage) -> str:
    if one.kind == "delegate":
        return f"The {_who(one)}"
    if passage.place and not passage.place.startswith("http"):
        return f"`{passage.place}`"
    return passage.title or f"`{one.name}`"


def _who(one: Finding) -> str:
    return next((str(one.given[name]) for name in MEMBER_FIELDS if one.given.get(name)), one.name)


def _task(one: Finding) -> str:
    return next((str(one.given[name]) for name in TASK_FIELDS if one.given.get(name)), "")


def _shown(table: Sequence[Row]) -> str:
    lines = [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in table[: ROWS + 1]]
    lines.insert(1, "|" + "---|" * len(table[0]))
    more = len(table) - 1 - ROWS
    return "\n".join(lines) + (f"\n\n… and {more} more rows." if more > 0 else "")


def _cell(text: str) -> str:
    return cut(text.replace("|", "/"), 60).replace("_", " ")


def _quoted(one: Finding) -> str:
    lines = [line.strip() for line in one.text.splitlines() if line.strip()]
    says = f"{label(one)} {'printed' if one.kind == 'code' else 'says'}:"
    if len(lines) == 1 and len(lines[0]) <= 240:
        return f"{says} {lines[0]}{'' if lines[0][-1] in '.!?…' else '.'}"
    shown = [f"> {cut(line, 160)}" for line in lines[:5]]
    return "\n".join([says, "", *shown, *(["> …"] if len(lines) > 5 else [])])


def _number(count: int) -> str:
    return ("no", "one", "two", "three", "four", "five", "six")[count] if count <= 6 else str(count)


def _joined(*parts: str) -> str:
    return "\n\n".join(filter(None, parts))
