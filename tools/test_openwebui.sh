#!/bin/sh
# Tests the pipe in a real Open WebUI with a real Chromium. Installs both if they are missing.
set -eu
cd "$(dirname "$0")/.."

tools/install_chromium.sh
tools/install_openwebui.sh >/dev/null
exec .venv/bin/pytest tests/system/openwebui "$@"
