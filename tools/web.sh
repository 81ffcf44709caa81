#!/bin/sh
# Runs npm in web/ with the given arguments, for example `tools/web.sh run test`. Installs Node and the packages of the
# page if they are missing; without arguments it does only that.
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
  echo "Installing the packages of the page (about half a minute, once) ..."
  npm ci --no-audit --no-fund --loglevel=error ||
    fail "the packages of the page could not be installed: see the lines above; is the npm registry reachable?"
fi
[ $# = 0 ] || exec npm --silent "$@"
