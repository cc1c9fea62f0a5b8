#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# An upgrade executes only what it has tried: a program that others may have written is refused, whatever leads to it,
# and one that takes its place between trial and execution is not executed.
set -u

# shellcheck source=tests/support/broker.sh
. "${srcdir:?}/tests/support/broker.sh"
export PATH=$builddir/client/memctl:$PATH
swapper=
trap '[ -z "$swapper" ] || kill "$swapper"; [ -z "$broker" ] || { kill "$broker" && wait "$broker"; } 2>/dev/null; rm -rf "$dir"' EXIT

fail() {
    echo "swapped.sh: line ${BASH_LINENO[0]}: $*" >&2
    cat "$dir/log" >&2
    exit 1
}

status() { memctl --json status | jq -r ".[0].$1"; }
install() { cp "$builddir/daemon/memoryd" "$dir/new" && mv "$dir/new" "$dir/memoryd"; }

install
printf '%s\n' "$ordinary_pages" '[broker]' >"$dir/config"
begin_broker "$dir/memoryd" --config "$dir/config"
memctl alloc --size 1M --name kept >/dev/null && echo hello | memctl fill kept || fail "no buffer"

# refused WHAT: the running program goes on
refused() {
    local before
    before=$(status broker_pid)
    : >"$dir/log"
    memctl upgrade >"$dir/out" 2>&1 && fail "an upgrade to $1 worked"
    grep -q 'can be written by others' "$dir/log" || fail "$1: the log does not say why"
    [ "$(status broker_pid)" = "$before" ] || fail "$1: another broker serves"
}

install
chmod 757 "$dir/memoryd"
refused "what everybody may write"
if [ "$(id -u)" = 0 ]; then
    install
    chown 61002 "$dir/memoryd"
    refused "another user's program"
    mv "$dir/memoryd" "$dir/theirs"
    ln -s theirs "$dir/memoryd"
    refused "a link to another user's program"
    rm "$dir/memoryd"
fi

# ---- changed between trial and execution ----
install
cp "$builddir/daemon/memoryd" "$dir/good"
cp /bin/true "$dir/bad"
(
    trap 'exit 0' TERM
    while :; do
        cp "$dir/bad" "$dir/a" && mv "$dir/a" "$dir/memoryd"
        cp "$dir/good" "$dir/a" && mv "$dir/a" "$dir/memoryd"
    done
) &
swapper=$!
done=0
for _ in $(seq 40); do
    memctl upgrade >"$dir/out" 2>&1 && done=$((done + 1))
    [ "$(memctl cat kept 2>"$dir/out" | head -c 5)" = hello ] || fail "nothing is left: $(cat "$dir/out")"
    [ $done -lt 4 ] || break
done
kill $swapper
wait $swapper 2>/dev/null
swapper=
kill -0 "$broker" || fail "the keeper is gone"

echo "swapped.sh: $done upgrades"
