"""What a message is about, as a phrase that stands in a sentence: `how bees find their way to food`, `tides`.

Pure, and English only: what it cannot turn round, it quotes. The scene asks for topics; whatever speaks uses the rest.
"""

import re
from collections.abc import Sequence

from limelight.understudy.sentences import cut, sentences

LONGEST = 100
OPENERS = r"(?:and|so|but|then|now|also|ok|okay|well|hi|hello|hey|please|about|on|for|step by step)"
POLITE = (
    r"(?:(?:can|could|would|will) you|i (?:want|need|would like|'d like)(?: you)?(?: to)?|let us|let's|do you know)"
)
ORDERS = (
    "add up|answer|ask|calculate|call|check|compare|compute|define|delete|describe|discuss|examine|explain|explore|"
    "find out|find|give|investigate|know|learn|list|look at|look for|look into|look up|plan|print|read|report on|"
    "report|research|run|say|search for|search|see|show|sum up|summari[sz]e|tell|try|use|work out|write|"
    "what about|how about"
)
"""What a user tells an assistant to do; what comes after it is what the message is about."""
ENDINGS = (
    r"(?:and|with|after|by|using|via|for|then|again|please|me|us|it|in python|in code|on the way|from another side|"
    r"step by step|in detail|in a few sentences)"
)
ASKING = ("how", "why", "when", "where", "what", "which", "who", "whose", "whether")
HEAD = (
    r"(how(?: (?:far|long|many|much|often|old|fast|high|deep|big|tall|\w+ly))?(?: \w+)?|why|when|where|who|"
    r"what(?: \w+)?|which(?: \w+){1,2})"
)
PRONOUNS = ("i", "we", "you", "they", "he", "she", "it", "one", "people", "this", "that", "there")
IRREGULAR = {
    "become": "became",
    "begin": "began",
    "bring": "brought",
    "build": "built",
    "buy": "bought",
    "come": "came",
    "cost": "cost",
    "cut": "cut",
    "do": "did",
    "draw": "drew",
    "drive": "drove",
    "eat": "ate",
    "fall": "fell",
    "feel": "felt",
    "find": "found",
    "fly": "flew",
    "get": "got",
    "give": "gave",
    "go": "went",
    "grow": "grew",
    "have": "had",
    "hold": "held",
    "keep": "kept",
    "know": "knew",
    "learn": "learned",
    "leave": "left",
    "lose": "lost",
    "make": "made",
    "mean": "meant",
    "put": "put",
    "read": "read",
    "rise": "rose",
    "run": "ran",
    "say": "said",
    "see": "saw",
    "sell": "sold",
    "send": "sent",
    "set": "set",
    "sing": "sang",
    "sleep": "slept",
    "speak": "spoke",
    "spread": "spread",
    "swim": "swam",
    "take": "took",
    "teach": "taught",
    "tell": "told",
    "think": "thought",
    "win": "won",
    "write": "wrote",
}
REGULAR = (
    "affect appear believe burn call cause change contain cook create cross depend die differ discover end enter exist "
    "explain follow form freeze happen help improve increase invent last like live look love matter measure melt move "
    "need open play produce pull push reach return save serve shine show sink smell start stay stop survive taste "
    "travel try turn use visit wait walk want work"
)

COMMON_WORDS = """
a about all also am an and another any are as ask at be been but by call can check could did do does each few file files
find first for from get give had has have he how i if in into is it its just let like list look make many me more most
much my need new no not now of on one only or other our out please print read report return returns run search see she
should show side so some tell than that the their them then there these they this those to tool tools try two up us use
used uses using was we were what when where whether which who why will with would write you your
came come comes exist exists gave gives goes happen happened happens help helped helps keep keeps know knows made makes
mean means meant need needs said says take takes think took want went work worked working works
"""


def topic_of(text: str) -> str:
    """What the first sentence that is about something is about; nothing, if none is."""
    phrases = (_phrase(sentence) for sentence in sentences(text))
    return next((cut(phrase, LONGEST) for phrase in phrases if content_words(phrase)), "")


def content_words(text: str) -> list[str]:
    """The words that say what a text is about, in their order, each once."""
    found = re.findall(r"[^\W\d_]{3,}|[A-Z]{2,}|[^\W\d_a-zA-Z]{2,}", text)
    return list(dict.fromkeys(word for word in found if word.lower() not in COMMON))


def finding_out(topic: str) -> str:
    """To `find out` something: `find out how bees dance`, but `find out about bees`."""
    if topic.startswith("“"):
        return f"answer {topic}"
    return f"find out {topic}" if topic.split(" ")[0].lower() in ASKING else f"find out about {topic}"


def halves(topic: str) -> tuple[str, str] | None:
    """The two things that a topic joins by `and`, if it is no more than that."""
    parts = topic.split(" and ")
    if len(parts) != 2 or topic.startswith("“") or topic.split(" ")[0].lower() in ASKING:
        return None
    return (parts[0], parts[1]) if all(map(content_words, parts)) else None


def listed(items: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, (", ".join(items[:-1]), *items[-1:])))


def upper(text: str) -> str:
    """With a capital, as a sentence or a heading begins."""
    return text[:1].upper() + text[1:]


def _phrase(sentence: str) -> str:
    asked = " ".join(sentence.split()).strip(" .?!,;:\"'`")
    opened = _opened(asked)
    core = _told(opened)
    if core[:1].islower() and not opened.startswith(core):
        return core  # what comes after an order has the order of words that a sentence needs
    return _turned(core) if core else ""


def _opened(text: str) -> str:
    """Without what only leads up to the matter."""
    before = None
    while before != text:
        before = text
        text = re.sub(rf"^(?:{OPENERS}|{POLITE})\b[\s,:!]*", "", text, flags=re.IGNORECASE)
    return text


def _told(text: str) -> str:
    """Of an order, what it is about; without a second order, and without what it ends in."""
    if found := re.match(rf"(?:{ORDERS})\b[^?]*?\b(?:about|regarding|concerning)\s+(.+)", text, re.IGNORECASE):
        text = found[1]
    before = None
    while before != text:
        before = text
        text = re.sub(rf"^(?:{ORDERS})\b(?! (?:is|are|was|were)\b)(?: (?:me|us|to))?[\s,:]*", "", text, flags=re.I)
    text = re.sub(rf"[,;]? and (?:then )?(?:{ORDERS}|{'|'.join(ASKING)})\b.*$", "", text, flags=re.IGNORECASE)
    return re.sub(rf"(?:[\s,;:]+{ENDINGS})+$", "", text, flags=re.IGNORECASE).strip(" ,;:`")


def _turned(text: str) -> str:
    """A question as the part of a sentence: `How do bees dance` as `how bees dance`. Otherwise it is quoted."""
    if found := re.match(r"(?:what|who)(?:'s| is| are| was| were)\s+(.+)", text, re.IGNORECASE):
        return found[1]
    if found := re.match(rf"{HEAD} (do|does|did) (.+)", text, re.IGNORECASE):
        return _with_verb(found[1].lower(), found[2].lower(), found[3]) or f"“{upper(text)}?”"
    if found := re.match(r"(do|does|did) (.+)", text, re.IGNORECASE):
        return _with_verb("whether", found[1].lower(), found[2]) or f"“{upper(text)}?”"
    if found := re.match(rf"(?:{HEAD} )?(is|are|was|were|can|could|should|will|would|must) (.+)", text, re.IGNORECASE):
        if found[1] and found[1].lower().startswith("which"):
            return _begun(text)
        return _with_helping_verb((found[1] or "whether").lower(), found[2].lower(), found[3]) or f"“{upper(text)}?”"
    return _begun(text)


def _begun(text: str) -> str:
    """What begins with a word that asks begins small; other words may be names."""
    return text[:1].lower() + text[1:] if text.split(" ")[0].lower() in ASKING else text


def _with_verb(head: str, auxiliary: str, rest: str) -> str | None:
    if auxiliary == "do":
        return f"{head} {rest}"
    words = rest.split()
    known = [at for at, word in enumerate(words) if at and word.lower() in VERBS]
    if not known and len(words) == 2:
        known = [1]
    if not known:
        return None
    at = known[0]
    words[at] = _third(words[at].lower()) if auxiliary == "does" else _past(words[at].lower())
    return " ".join([head, *words])


def _with_helping_verb(head: str, verb: str, rest: str) -> str | None:
    words = rest.split()
    if words[0].lower() in PRONOUNS:
        subject = 1
    elif len(words) > 1 and re.search(f"(?:ed|{'|'.join(PARTICIPLES)})$", words[-1].lower()):
        subject = len(words) - 1
    elif head in ("where", "when") or re.match(r"how \w+$", head):
        subject = len(words)
    elif len(words) <= 3 or words[0].lower() in ARTICLES:
        subject = len(words) - 1 if verb in ("is", "are", "was", "were") else 2 if words[0].lower() in ARTICLES else 1
    else:
        return None
    return " ".join([head, *words[:subject], verb, *words[subject:]])


def _third(verb: str) -> str:
    if verb in ("have", "do", "go"):
        return {"have": "has", "do": "does", "go": "goes"}[verb]
    if re.search("[^aeiou]y$", verb):
        return f"{verb[:-1]}ies"
    return f"{verb}es" if verb.endswith(("s", "x", "z", "ch", "sh")) else f"{verb}s"


def _past(verb: str) -> str:
    if verb in IRREGULAR:
        return IRREGULAR[verb]
    if re.search("[^aeiou]y$", verb):
        return f"{verb[:-1]}ied"
    return f"{verb}d" if verb.endswith("e") else f"{verb}ped" if verb == "stop" else f"{verb}ed"


VERBS = frozenset((*IRREGULAR, *REGULAR.split()))
PARTICIPLES = ("built", "born", "found", "known", "made", "sent", "sold", "taken", "told", "won", "written")
ARTICLES = ("the", "a", "an")
COMMON = frozenset(COMMON_WORDS.split())
