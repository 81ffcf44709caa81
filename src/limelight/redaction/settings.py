"""What the settings want to be hidden, and the secrets that this process knows."""

import os
import re

from limelight.config import Settings
from limelight.errors import SetupError
from limelight.redaction.rules import Hiding, secrets_in


def hiding_of(settings: Settings, *more: re.Pattern[str]) -> Hiding:
    """With `more` patterns than the settings have. Raises SetupError for a pattern that is none."""
    patterns = list(more)
    for written in settings.store.redact:
        place = settings.origin.place("store", "redact")
        try:
            pattern = re.compile(written)
        except re.error as error:
            raise SetupError(f"{place}store.redact: {written!r} is no regular expression: {error}") from error
        if pattern.search(""):
            raise SetupError(f"{place}store.redact: {written!r} matches everything, so nothing would be left")
        patterns.append(pattern)
    return Hiding(patterns, settings.store.redact_fields, (settings.auth.api_key, *secrets_in(os.environ)))
