#!/bin/sh
# Installs Chromium if it is missing. This requires root; for other users it prints the command to run.
set -eu

fail() {
  echo "limelight: $1" >&2
  exit 2
}

command -v chromium >/dev/null && exit 0
[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || fail "Chromium is needed: apt-get install chromium"
echo "Installing Chromium ..."
{ apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; } ||
  fail "Chromium could not be installed: see the lines above"
