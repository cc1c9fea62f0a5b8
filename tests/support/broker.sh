# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# For scripts that want a broker of their own. Whoever sources this has a folder, $dir, that goes when the script ends,
# and the environment in which every client looks for its broker there; begin_broker starts it, begin_test_broker one that
# leaves huge pages alone.
dir=$(mktemp -d "${TMPDIR:-/tmp}/memoryd-test.XXXXXX")
export MEMORYD_SOCKET=$dir/memoryd.sock MEMORYD_AUTOSTART=0
broker= # its pid, while it is to be ended with the script
trap '[ -z "$broker" ] || { kill "$broker" && wait "$broker"; } 2>/dev/null || :; rm -rf "$dir"' EXIT

# Huge pages that are there for a moment are another test's, which has set them.
ordinary_pages='[pools]
pages = base'

# begin_broker [PROGRAM [ARGUMENT...]]: returns when it serves. What it says is in $dir/log.
begin_broker() {
    [ $# -gt 0 ] || set -- "${builddir:?}/daemon/memoryd"
    "$@" --socket "$MEMORYD_SOCKET" >"$dir/log" 2>&1 &
    broker=$!
    for _ in $(seq 600); do
        "$builddir/client/memctl/memctl" status >/dev/null 2>&1 && return
        kill -0 "$broker" 2>/dev/null || break
        sleep 0.05
    done
    echo "memoryd did not start:" >&2
    cat "$dir/log" >&2
    exit 1
}

begin_test_broker() {
    printf '%s\n' "$ordinary_pages" >"$dir/config"
    begin_broker "${builddir:?}/daemon/memoryd" --config "$dir/config"
}
