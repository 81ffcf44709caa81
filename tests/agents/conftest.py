"""Fixtures for tests that import code from folders of their own."""

import os
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from limelight.config import env_file


@pytest.fixture
def project_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """The working folder. Changes of the import path, of imported modules and of the environment are undone."""
    before, environ = set(sys.modules), dict(os.environ)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(env_file, "_applied", {})
    monkeypatch.setattr(env_file, "_origins", {})
    monkeypatch.setattr(env_file, "_read", set[tuple[str, str]]())
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in set(sys.modules) - before:
        module = sys.modules[name]
        places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
        if any(str(tmp_path) in str(place) for place in places):
            del sys.modules[name]
    os.environ.clear()
    os.environ.update(environ)
