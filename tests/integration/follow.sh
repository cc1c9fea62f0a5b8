#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# memctl events --follow of one buffer, of a name and of all, over the death of a broker and the loss of all that it
# had; and what it does not accept.
set -u

. "${srcdir:?}/tests/support/broker.sh"
. "$srcdir/tests/support/expect.sh"
PATH=$builddir/client/memctl:$PATH

# ids are counted, so that without buffers in stock it is known which comes next
ordinary_pages+=$'\nstock = 0'
begin_test_broker
followers=()
trap 'kill -KILL "${followers[@]}" 2>/dev/null; kill "$broker" && wait "$broker"; rm -rf "$dir"' EXIT

# follow FILE ARGUMENT...: as objects, in the background, until $dir/FILE
follow() {
    local file=$1
    shift
    memctl --json events --follow "$@" >"$dir/$file" 2>"$dir/$file.err" &
    followers+=($!)
}
# eventually COMMAND...
eventually() {
    for _ in $(seq 1200); do "$@" && return; sleep 0.05; done
    head -c 4000 "$dir"/of-* >&2
    fail "never: $*"
}
# has FILE CONDITION: an event for which that is so
has() { jq -se "any(.[]; $2)" "$dir/$1" >"$dir/jq" 2>&1; }
# lacks FILE CONDITION: no event for which that is so; a line that is half written is read again
lacks() {
    local status
    for _ in $(seq 1200); do
        jq -se "all(.[]; $2 | not)" "$dir/$1" >"$dir/jq" 2>&1
        status=$?
        [ $status -gt 1 ] || return $status
        sleep 0.05
    done
    fail "cannot be read: $1"
}
# opening BUFFER COMMAND...: opens it until the command succeeds, since that a follower has subscribed shows only in
# what it says; ever more rarely, so that a slow one is not overrun.
opening() {
    local buffer=$1 times=2
    shift
    for _ in $(seq 11); do
        memctl open "$buffer" true >/dev/null 2>&1
        for _ in $(seq $times); do "$@" && return; sleep 0.05; done
        times=$((2 * times))
    done
    eventually "$@"
}
# hears FILE BUFFER: that somebody holds it, since something was missed last
hears() {
    jq -se 'map(if .kind == "lost" or .buffer == '"$2"' then .kind else "" end) |
        rindex("held") > (rindex("lost") // -1)' \
        "$dir/$1" >"$dir/jq" 2>&1
}
# told FILE BUFFER: it is opened, and the follower says so
told() { opening "$2" hears "$1" "$2"; }
sessions() { memctl --json sessions | jq -e "length == $1" >/dev/null; }
# reach ID: the next buffer has this id, if nobody else comes meanwhile; a session, too, takes one
reach() {
    local at=0 step=0 last
    while [ $((at + 2 * step)) -lt "$1" ]; do
        last=$at
        expect 0 memctl alloc --size 4K --name "filler/$at"
        at=$(cat "$dir/out")
        step=$((at - last))
    done
    for _ in $(seq $(($1 - at - step))); do memctl status >/dev/null; done
}
# new NAME: a buffer of this name, which outlives it; its id is in $new
new() {
    expect 0 memctl alloc --size 4K --publishable --name "$1"
    new=$(cat "$dir/out")
    expect 0 memctl share --keeping --expires 1h "$new"
}

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
name=${followers[-1]}
follow of-all --kind held,refused
all=${followers[-1]}
follow of-user --uid "$(id -u)" later
user=${followers[-1]}
memctl events --follow --kind held,destroyed "$id" >"$dir/of-text" 2>&1 &
followers+=($!)
told of-buffer "$id"
opening "$id" grep -q ' held ' "$dir/of-text"
eventually grep -q 'waiting until it is bound' "$dir/of-name.err"
eventually grep -q 'waiting until it is bound' "$dir/of-user.err"

# ---- who comes, goes and dies; not of other buffers ----
told of-all "$other"
expect 3 memctl open plain sh -c 'exit 3'
expect 0 memctl open plain
eventually has of-buffer '.kind == "held" and .buffer == '"$id"' and .uid == '"$(id -u)"' and .pid > 0 and .session > 0'
eventually has of-buffer '.kind == "died" and .buffer == '"$id"
eventually has of-buffer '.kind == "left" and .detail == "it holds the buffer no more"'
eventually has of-buffer '.kind == "death" and (.end == "exited" and .exit_status == 3 or .end == "unknown")'
eventually has of-all '.kind == "held" and .buffer == '"$other"
lacks of-buffer '.buffer == '"$other" || fail "another buffer's"

# ---- of all, refusals with them ----
expect 1 memctl alloc --size 1P
eventually has of-all '.kind == "refused" and .serial > 0'
lacks of-all '.kind != "held" and .kind != "refused"' || fail "what was not asked for"

# ---- a name that is not there yet, and the buffer that it is bound to then ----
expect 0 memctl alloc --size 4K --name later
later=$(cat "$dir/out")
eventually has of-name '.kind == "name" and .bound and .name == "later" and .buffer == '"$later"
told of-name "$later"

# ---- of a user is what that user's sessions do; nobody binds a name ----
told of-user "$later"
lacks of-user '.uid != '"$(id -u)"' and .kind != "lost"' || fail "nobody's, or another user's"

# ---- the broker dies; a name is bound to another buffer meanwhile, and later to a third one ----
new moving
first=$new
follow of-moving moving
moving=${followers[-1]}
told of-moving "$first"
kill -STOP "$moving"
kill -9 "$(memctl --json status | jq '.[0].broker_pid')"
eventually has of-buffer '.kind == "lost"'
eventually has of-name '.kind == "lost"'
eventually memctl rm moving 2>/dev/null
new moving
second=$new
kill -CONT "$moving"
told of-moving "$second"
told of-buffer "$id"
told of-name "$later"
expect 0 memctl publish "$first"
expect 0 memctl rm moving
new moving
eventually has of-moving '.kind == "name" and .bound and .buffer == '"$new"
expect 0 memctl publish "$second"
told of-moving "$new"
lacks of-moving '.kind == "published" and .buffer == '"$first" || fail "bound to another one while it was away"
lacks of-moving '.kind == "published" and .buffer == '"$second" || fail "the name was bound to another one"

expect 0 memctl publish plain
eventually has of-buffer '.kind == "published" and .buffer == '"$id"

# ---- the end of a buffer is the end of following it; a name goes on ----
expect 0 memctl rm "$id"
wait "$buffer" || fail "it ended with $?"
[ "$(jq -r .kind <"$dir/of-buffer" | tail -n 1)" = destroyed ] || fail "not the last: $(cat "$dir/of-buffer")"
eventually grep -qE "^[0-9:]{8}  destroyed buffer $id  the buffer has ended$" "$dir/of-text"
expect 0 memctl rm later
eventually has of-name '.kind == "name" and .bound == false'
expect 0 memctl alloc --size 4K --name kept
kept=$(cat "$dir/out")
expect 0 memctl alloc --size 4K --name later
later=$(cat "$dir/out")
eventually has of-name '.kind == "name" and .bound and .buffer == '"$later"

# ---- all is lost, and buffers get the same ids again: a name's is followed, but not what an id means now ----
follow of-name-2 later
follow of-kept "$kept"
gone=${followers[-1]}
follow of-kept-2 "$kept"
gone_2=${followers[-1]}
told of-name-2 "$later"
told of-kept "$kept"
told of-kept-2 "$kept"
kill -KILL "$moving" "$all" "$user"
# those that are stopped see only what has come of it
kill -STOP "$name" "$gone"
processes=("$broker" "$(memctl --json status | jq '.[0].broker_pid')")
kill -STOP "${processes[@]}"
kill -KILL "${processes[@]}"
wait "$broker" 2>/dev/null
eventually has of-kept-2 '.kind == "lost"'
# the broker's processes have its lock until the last one is dead
flock --timeout 60 "$MEMORYD_SOCKET.lock" true || fail "somebody lives and has the lock"
begin_test_broker
eventually has of-kept-2 '.kind == "destroyed" and .buffer == '"$kept"
wait "$gone_2" || fail "it ended with $?"
# that of the name, and the one that asks
eventually sessions 2
reach "$kept"
expect 0 memctl alloc --size 4K --name another
another=$(cat "$dir/out")
expect 0 memctl alloc --size 4K --name later
[ "$another" = "$kept" ] && [ "$(cat "$dir/out")" = "$later" ] ||
    echo "follow.sh: not the same ids as before, so that less is checked: $another is not $kept"
later=$(cat "$dir/out")
kill -CONT "$name" "$gone"
told of-name "$later"
told of-name-2 "$later"
eventually has of-kept '.kind == "destroyed" and .buffer == '"$kept"
wait "$gone" || fail "it ended with $?"
echo "follow.sh: all was told"
