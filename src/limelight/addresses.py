"""Addresses as they may be told to people who watch: without names, passwords and queries."""

import re

_PASSWORD = re.compile(r"(?<=//)[^/@]*@")


def without_secrets(url: str) -> str:
    return _PASSWORD.sub("", url).partition("?")[0]
