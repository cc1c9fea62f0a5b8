#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# make demo: a private broker in a folder of its own, and the story of demo.c told with it.
set -eu

dir=$(mktemp -d "${TMPDIR:-/tmp}/memoryd-demo.XXXXXX")
# the story's stranger is another user, who must get to the socket
chmod 755 "$dir"
export MEMORYD_SOCKET=$dir/memoryd.sock MEMORYD_AUTOSTART=0
broker=
trap '[ -z "$broker" ] || { kill "$broker" && wait "$broker"; } 2>/dev/null || :; rm -rf "$dir"' EXIT

"$builddir/daemon/memoryd" --socket "$MEMORYD_SOCKET" 2>"$dir/log" &
broker=$!
for _ in $(seq 200); do
    "$builddir/client/memctl/memctl" status >/dev/null 2>&1 && break
    kill -0 "$broker" 2>/dev/null || { echo "demo: memoryd did not start:" >&2; cat "$dir/log" >&2; exit 1; }
    sleep 0.05
done

echo 'memoryd: processes share one buffer'
if ! "$builddir/tests/integration/demo"; then
    echo 'demo: the broker said:' >&2
    cat "$dir/log" >&2
    exit 1
fi
kill "$broker"
wait "$broker" || { echo "demo: the broker ended with status $?" >&2; cat "$dir/log" >&2; exit 1; }
broker=
echo 'All of it was true.'
