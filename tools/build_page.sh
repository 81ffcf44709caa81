#!/bin/sh
# Builds the page of web/ into src/limelight/page, if its sources have changed since the last build. If they have not, Node
# is not needed. The old page is replaced after the build has succeeded.
set -eu
cd "$(dirname "$0")/.."

page=src/limelight/page
stamp=$page/.stamp
new=web/node_modules/.page

fail() {
  echo "limelight: $1" >&2
  exit 2
}

# The files that the build depends on; it does not depend on tests.
sources() { find web -name node_modules -prune -o -type f ! -name '*.test.ts' ! -name '*.test.tsx' ! -name '.*' -print | LC_ALL=C sort; }
wanted=$(sources | xargs cksum | cksum)

[ -f $page/index.html ] && [ -f $stamp ] && [ "$(cat $stamp)" = "$wanted" ] && exit 0

tools/web.sh
echo "Building the page (a few seconds) ..."
tools/web.sh exec -- vite build --logLevel warn --outDir "../$new" --emptyOutDir || fail "the page could not be built: see the lines above"
echo "$wanted" >$new/.stamp
rm -rf $page
mv $new $page
