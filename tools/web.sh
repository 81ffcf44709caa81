#!/bin/sh
# Runs npm in web/ with what follows, e.g. `tools/web.sh run test`. Fetches Node and the page's packages if they are
# missing; with nothing behind it, that is all.
set -eu
cd "$(dirname "$0")/.."

fail() {
  echo "limelight: $1" >&2
  exit 2
}

node=$(tools/node.sh)
PATH=$node:$PATH
export PATH
cd web
NPM_CONFIG_UPDATE_NOTIFIER=false
export NPM_CONFIG_UPDATE_NOTIFIER
if ! node ../tools/npm_installed.mjs; then
  echo "Installing what the page is built with (about half a minute, once) ..."
  npm ci --no-audit --no-fund --loglevel=error ||
    fail "the page's packages could not be installed: see the lines above; is the npm registry reachable?"
fi
[ $# = 0 ] || exec npm --silent "$@"
