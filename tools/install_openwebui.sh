#!/bin/sh
# Installs Open WebUI once into a venv in the cache folder, and prints the path of its command.
# All clones share its packages (about 3 GB), because they are outside of the clone.
set -eu

version=0.12.4
# The CPU build of torch is installed first; otherwise Open WebUI installs several GB of packages for graphics cards.
torch=2.13.0

cache=${LIMELIGHT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/limelight}
venv=$cache/open-webui-$version
stamp=$venv/.installed

fail() {
  echo "limelight: $1" >&2
  exit 2
}

if ! [ -f "$stamp" ]; then
  mkdir -p "$cache"
  # Remove what an interrupted installation left.
  rm -rf "$venv"
  echo "Installing Open WebUI $version into $venv (about four minutes, once) ..." >&2
  "$(dirname "$0")/../.venv/bin/python" -m venv "$venv" >&2
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "torch==$torch" >&2 ||
    fail "torch $torch could not be installed: see the lines above"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "open-webui==$version" >&2 ||
    fail "Open WebUI $version could not be installed: see the lines above"
  touch "$stamp"
fi
echo "$venv/bin/open-webui"
