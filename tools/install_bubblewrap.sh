#!/bin/sh
# Installs bubblewrap, with which the tests run code of a model in a sandbox, if it is missing. This requires root; for
# other users it prints the command to run.
set -eu

fail() {
  echo "limelight: $1" >&2
  exit 2
}

command -v bwrap >/dev/null && exit 0
[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || fail "bubblewrap is needed: apt-get install bubblewrap"
echo "Installing bubblewrap ..."
{ apt-get update -qq && apt-get install -y -qq --no-install-recommends bubblewrap >/dev/null; } ||
  fail "bubblewrap could not be installed; see the lines above"
