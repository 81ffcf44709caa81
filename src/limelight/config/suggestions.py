"""Words in a configuration: which one was probably meant, and which may be a name. Pure."""

import difflib
import re
from collections.abc import Iterable

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
NAME_RULE = "1 to 64 letters, digits, '.', '_' or '-', a letter or digit first, as names are parts of addresses"
NEAR = 0.7
"""`depp` is near enough to `deep`; `nobody` is not near to `good`."""


def is_name(word: str) -> bool:
    """Whether an agent can be called so."""
    return NAME.fullmatch(word) is not None


def meant(word: str, known: Iterable[str]) -> str:
    """The known word that was probably meant; empty if none is near."""
    by_small = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), list(by_small), n=1, cutoff=NEAR)
    return by_small[close[0]] if close else ""


def nearest(word: str, known: Iterable[str]) -> str:
    """The end of a sentence about a word that is not known: the nearest one, or all that there are."""
    known = list(known)
    close = meant(word, known)
    return f"; did you mean {close!r}?" if close else f"; there are: {', '.join(sorted(known))}"
