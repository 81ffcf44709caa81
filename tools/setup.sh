#!/bin/sh
# Creates .venv and installs Limelight with its dependencies. A later call returns at once if nothing has changed.
set -eu
cd "$(dirname "$0")/.."

venv=.venv
stamp=$venv/.limelight-setup
wanted=$(cat pyproject.toml constraints.txt tools/setup.sh | cksum)

fail() {
  echo "limelight: $1" >&2
  exit 2
}

[ -x $venv/bin/limelight ] && [ -f $stamp ] && [ "$(cat $stamp)" = "$wanted" ] && exit 0
[ -w . ] || fail "the folder $(pwd) is not writable: change its owner, or clone into another folder"

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

python=${PYTHON:-}
if [ -z "$python" ]; then
  for candidate in python3 python3.13 python3.12 python3.11 python; do
    if new_enough "$candidate"; then python=$candidate; break; fi
  done
fi
[ -n "$python" ] || fail "Python 3.11 or newer is needed: install it, or name one with PYTHON=/path/to/python"
new_enough "$python" || fail "$python is not Python 3.11 or newer: name another with PYTHON="

if ! [ -x $venv/bin/python ]; then
  echo "Creating $venv with $("$python" --version) ..."
  "$python" -m venv $venv || fail "the virtual environment could not be created: install the venv module (Debian: apt-get install python3-venv)"
fi

echo "Installing Limelight and its dependencies (about two minutes the first time) ..."
$venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[all,dev]' ||
  fail "the packages could not be installed: see the lines above; is the package index reachable?"
echo "$wanted" >$stamp
