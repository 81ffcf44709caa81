#!/bin/sh
# Installs Open WebUI into a venv of its own in the cache folder, once, and prints the path of its command.
# Its packages (about 3 GB) stay out of the clone, so that every clone and every run of the tests shares them.
set -eu

version=0.12.4
# The build of torch for the CPU comes first: without it, Open WebUI's own requirement brings several GB for graphics cards.
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
  # Half an installation is no installation: what an interrupted call left is removed.
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
