#!/bin/sh
# Tries the pipe in a real Open WebUI, driven by a real Chromium; installs both if they are missing.
set -eu
cd "$(dirname "$0")/.."

fail() {
  echo "limelight: $1" >&2
  exit 2
}

if ! command -v chromium >/dev/null; then
  [ "$(id -u)" = 0 ] || fail "Chromium is needed: apt-get install chromium"
  echo "Installing Chromium ..."
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; } ||
    fail "Chromium could not be installed: see the lines above"
fi
tools/openwebui.sh >/dev/null
exec .venv/bin/pytest e2e/openwebui -p no:cacheprovider "$@"
