#!/bin/sh
# Tries the pipe in a real Open WebUI, driven by a real Chromium; installs both if they are missing.
set -eu
cd "$(dirname "$0")/.."

tools/chromium.sh
tools/openwebui.sh >/dev/null
exec .venv/bin/pytest tests/system/openwebui "$@"
