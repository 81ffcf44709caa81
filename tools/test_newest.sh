#!/bin/sh
# Tests the newest versions of the frameworks, in a separate venv and without the constraints.
set -eu
cd "$(dirname "$0")/.."

cache=${LIMELIGHT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/limelight}
venv=$cache/newest
mkdir -p "$cache"
[ -x "$venv/bin/python" ] || .venv/bin/python -m venv "$venv"
echo "Installing the newest versions into $venv ..."
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade --upgrade-strategy eager --editable '.[all,dev]'
"$venv/bin/python" -m pip check
# The extra limits smolagents to one minor version, because its instrumentation uses private methods.
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade 'smolagents[openai]'
"$venv/bin/python" -m pip list --disable-pip-version-check | grep -Ei '^(agno|smolagents|deepagents|langgraph|langchain|openai) ' || true
exec "$venv/bin/python" -m pytest tests/sources tests/builtin tests/docs/test_examples.py "$@"
