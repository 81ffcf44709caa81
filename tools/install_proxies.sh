#!/bin/sh
# Installs the programs that the files in deploy/ configure, if they are missing: nginx, Caddy and systemd-analyze. This
# requires root; for other users it prints the command to run. It starts no service.
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
# Without this policy, apt-get starts the service of a package that it installs.
policy=/usr/sbin/policy-rc.d
if ! [ -e $policy ]; then
  trap 'rm -f $policy' EXIT
  printf '#!/bin/sh\nexit 101\n' >$policy
  chmod +x $policy
fi
# shellcheck disable=SC2086
{ apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing >/dev/null; } ||
  fail "these could not be installed:$missing; see the lines above"
