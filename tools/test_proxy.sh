#!/bin/sh
# Tests the server behind a real nginx and a real Caddy, configured by the files in deploy/, with a real Chromium. Installs
# them if they are missing.
set -eu
cd "$(dirname "$0")/.."

tools/install_chromium.sh
tools/install_proxies.sh
exec .venv/bin/pytest tests/system/proxy "$@"
