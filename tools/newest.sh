#!/bin/sh
# Tries the newest versions of the frameworks: a venv of its own, without the constraints, and the tests that meet them.
set -eu
cd "$(dirname "$0")/.."

cache=${LIMELIGHT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/limelight}
venv=$cache/newest
mkdir -p "$cache"
[ -x "$venv/bin/python" ] || .venv/bin/python -m venv "$venv"
echo "Installing the newest versions into $venv ..."
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade --upgrade-strategy eager --editable '.[all,dev]'
"$venv/bin/python" -m pip check
# Our extra holds smolagents below the next minor version, as its taps rest on methods that are not public.
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade 'smolagents[openai]'
"$venv/bin/python" -m pip list --disable-pip-version-check | grep -Ei '^(agno|smolagents|deepagents|langgraph|langchain|openai) ' || true
exec "$venv/bin/python" -m pytest tests/sources tests/builtin tests/docs/test_examples.py "$@"
