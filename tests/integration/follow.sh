#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# memctl events --follow of one buffer, of a name and of all, over the death of a broker; and what it does not accept.
set -u

. "${srcdir:?}/tests/support/broker.sh"
. "$srcdir/tests/support/expect.sh"
PATH=$builddir/client/memctl:$PATH

begin_test_broker
followers=()
trap 'kill "${followers[@]}" 2>/dev/null; kill "$broker" && wait "$broker"; rm -rf "$dir"' EXIT

# follow FILE ARGUMENT...: as objects, in the background, until $dir/FILE
follow() {
    local file=$1
    shift
    memctl --json events --follow "$@" >"$dir/$file" 2>"$dir/$file.err" &
    followers+=($!)
}
sessions() { memctl --json sessions | jq -e "length == $1" >/dev/null; }
# eventually COMMAND...
eventually() {
    for _ in $(seq 1200); do "$@" && return; sleep 0.05; done
    head -c 4000 "$dir"/of-* >&2
    fail "never: $*"
}
# has FILE CONDITION: an event for which that is so
has() { jq -se "any(.[]; $2)" "$dir/$1" >"$dir/jq" 2>&1; }

# ---- what it does not accept, each with what would do ----
expect 2 memctl events --kind odd; said "does not take .odd'; there are: .*refused,.*, held, left, died, .*destroyed"
expect 2 memctl events --kind held,odd
expect 2 memctl events --kind held; said 'with --follow only'
expect 2 memctl events plain; said 'with --follow only'
expect 2 memctl events --follow --kind refused plain; said 'not of a buffer'
expect 2 memctl events --follow --kind pressure plain; said 'not of a buffer'
expect 2 memctl events --follow "$(printf '%064d' 7)"; said 'token'
expect 2 memctl events --follow plain more
expect 1 memctl events --follow 999; said 'never was a buffer 999'
expect 2 memctl alloc --size 4K --pages odd; said 'there are: any, base, thp, hugetlb'

expect 0 memctl alloc --size 4K --name plain --publishable
id=$(cat "$dir/out")
expect 0 memctl alloc --size 4K --name other
other=$(cat "$dir/out")
follow of-buffer "$id"
buffer=${followers[-1]}
follow of-name later
follow of-all --kind held,refused
memctl events --follow --kind destroyed "$id" >"$dir/of-text" 2>&1 &
followers+=($!)
# the four, and the one that asks
eventually sessions 5
eventually grep -q 'waiting until it is bound' "$dir/of-name.err"

# ---- who comes, goes and dies; not of other buffers ----
expect 0 memctl open other true
expect 3 memctl open plain sh -c 'exit 3'
expect 0 memctl open plain
eventually has of-buffer '.kind == "held" and .buffer == '"$id"' and .uid == '"$(id -u)"' and .pid > 0 and .session > 0'
eventually has of-buffer '.kind == "died" and .buffer == '"$id"
eventually has of-buffer '.kind == "left"'
eventually has of-buffer '.kind == "death" and (.end == "exited" and .exit_status == 3 or .end == "unknown")'
eventually has of-all '.kind == "held" and .buffer == '"$other"
has of-buffer '.buffer == '"$other" && fail "another buffer's"

# ---- of all, refusals with them ----
expect 1 memctl alloc --size 1P
eventually has of-all '.kind == "refused" and .serial > 0'
has of-all '.kind != "held" and .kind != "refused"' && fail "what was not asked for"

# ---- a name that is not there yet, and the buffer that it is bound to then ----
expect 0 memctl alloc --size 4K --name later
later=$(cat "$dir/out")
eventually has of-name '.kind == "name" and .bound and .name == "later" and .buffer == '"$later"
expect 0 memctl open later true
eventually has of-name '.kind == "held" and .buffer == '"$later"

# ---- the broker dies ----
kill -9 "$(memctl --json status | jq '.[0].broker_pid')"
eventually has of-buffer '.kind == "lost"'
eventually has of-name '.kind == "lost"'
is_told_again() {
    memctl open plain true >/dev/null 2>&1
    jq -se 'map(.kind) | rindex("held") > rindex("lost")' "$dir/of-buffer" >"$dir/jq" 2>&1
}
eventually is_told_again
expect 0 memctl publish plain
eventually has of-buffer '.kind == "published" and .buffer == '"$id"

# ---- the end of a buffer is the end of following it; a name goes on ----
expect 0 memctl rm "$id"
wait "$buffer" || fail "it ended with $?"
[ "$(jq -r .kind <"$dir/of-buffer" | tail -n 1)" = destroyed ] || fail "not the last: $(cat "$dir/of-buffer")"
eventually grep -qE "^[0-9:]{8}  destroyed buffer $id  the buffer has ended$" "$dir/of-text"
expect 0 memctl rm later
eventually has of-name '.kind == "name" and .bound == false'
expect 0 memctl alloc --size 4K --name later
eventually has of-name '.kind == "name" and .bound and .buffer == '"$(cat "$dir/out")"
echo "follow.sh: all was told"
