"""A plan while a model writes it: `feed` takes pieces of its text as they come, and gives what of them is the plan.

Pure. A plan ends where the model writes `<end_plan>`, and has no space around it: what may be the beginning of either
is held back until it is clear, and so is half a character. So its pieces in a row are what `plan_of` makes of it all.
"""

from limelight.sources.smolagents.code_blocks import beginning_of

END = "<end_plan>"


def plan_of(text: str) -> str:
    """The plan in what a model has said."""
    return text.partition(END)[0].strip()


class PlanText:
    """Follows one reply of a model that plans."""

    def __init__(self) -> None:
        self._held = ""
        self._begun = False
        self._ended = False

    def feed(self, text: str) -> str:
        if self._ended:
            return ""
        text, end, _ = (self._held + text).partition(END)
        self._ended = bool(end)
        kept = len(text) - (0 if end else beginning_of(END, text) or _half_a_character(text))
        said = text[:kept] if self._begun else text[:kept].lstrip()
        bare = said.rstrip()
        self._held = said[len(bare) :] + text[kept:]
        self._begun = self._begun or bool(bare)
        return bare

    def rest(self) -> str:
        """What was held back, now that nothing more comes."""
        return "" if self._ended else self._held.rstrip()


def _half_a_character(text: str) -> int:
    """1 if the text ends with the first half of a surrogate pair, else 0."""
    return int("\ud800" <= text[-1:] <= "\udbff")
