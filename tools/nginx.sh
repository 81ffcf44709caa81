#!/bin/sh
# Installs what the files in deploy/ are for and is missing: nginx, Caddy, and systemd's analyzer. Root can do that; others
# are told what is needed. Nothing is started.
set -eu

fail() {
  echo "limelight: $1" >&2
  exit 2
}

missing=
command -v nginx >/dev/null || [ -x /usr/sbin/nginx ] || missing="$missing nginx"
command -v caddy >/dev/null || missing="$missing caddy"
command -v systemd-analyze >/dev/null || missing="$missing systemd"
command -v openssl >/dev/null || missing="$missing openssl"
[ -n "$missing" ] || exit 0
[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || fail "these are needed: apt-get install$missing"
echo "Installing$missing ..."
# A package that is installed starts its server, unless this says that it must not.
policy=/usr/sbin/policy-rc.d
if ! [ -e $policy ]; then
  trap 'rm -f $policy' EXIT
  printf '#!/bin/sh\nexit 101\n' >$policy
  chmod +x $policy
fi
# shellcheck disable=SC2086
{ apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing >/dev/null; } ||
  fail "these could not be installed:$missing; see the lines above"
