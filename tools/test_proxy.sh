#!/bin/sh
# Tests the server behind a real nginx and a real Caddy, configured by the files in deploy/, with a real Chromium. Installs
# them if they are missing.
set -eu
cd "$(dirname "$0")/.."

tools/chromium.sh
tools/nginx.sh
exec .venv/bin/pytest tests/system/proxy "$@"
