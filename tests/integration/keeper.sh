#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The two processes of memoryd: whichever is killed, somebody serves at the same socket afterwards; nobody else can take
# the place meanwhile; and in the end nothing is left.
set -u

memoryd=${MEMORYD:-$builddir/daemon/memoryd}
memctl=$builddir/client/memctl/memctl
dir=$TMPDIR/keeper
mkdir "$dir"
cd "$dir" || exit 99
export MEMORYD_SOCKET=$dir/s
faults=0

fail() {
    echo "FAILED: $*"
    faults=$((faults + 1))
}

# until COMMAND...: it succeeds within half a minute
until_() {
    for _ in $(seq 600); do
        "$@" 2>/dev/null && return
        sleep 0.05
    done
    fail "not in time: $*; $(cat log)"
    return 1
}

# keeper and broker, as the one who serves sees them
look() {
    local seen
    seen=$(timeout 30 "$memctl" --json status 2>/dev/null) || return
    keeper=$(sed -n 's/.*"keeper_pid": \([0-9]*\).*/\1/p' <<<"$seen")
    broker=$(sed -n 's/.*"broker_pid": \([0-9]*\).*/\1/p' <<<"$seen")
    [ -n "$keeper" ] && [ -n "$broker" ]
}
other_broker() { look && [ "$broker" != "$before" ]; }
gone() { ! kill -0 "$1" 2>/dev/null || grep -q '^State:.*Z' "/proc/$1/status"; }
no_broker() { ! pgrep -f -- "--broker=.*$dir/s" >/dev/null; }
says() { grep -q -- "$1" log; }

cleanup() {
    kill -STOP "$keeper" "$broker" "$pid" 2>/dev/null
    kill -KILL "$keeper" "$broker" "$pid" 2>/dev/null
}
keeper=0 broker=0 pid=0
trap '[ $keeper = 0 ] || cleanup' EXIT

printf '[arena]\nbase = 0x566000000000\nsize = 128G\n' >good.conf
cp good.conf now.conf
run=("$memoryd" --config "$dir/now.conf" --socket "$dir/s")

# ---- hidden options are not for anybody ----
for option in --broker=99 --broker=x --carrier=3 --carrier=99,98; do
    "$memoryd" $option 2>/dev/null
    [ $? = 2 ] || fail "memoryd $option is not refused as wrong use"
done

"${run[@]}" 2>log &
pid=$!
until_ look || exit 1
[ "$keeper" = $pid ] || fail "the keeper is $keeper, started was $pid"
[ "$(ps -o ppid= -p "$broker" | tr -d ' ')" = "$keeper" ] || fail "the broker is not the keeper's child"
[ "$(cat "/proc/$broker/comm")" = memoryd ] || fail "the broker is called $(cat "/proc/$broker/comm")"

# ---- the broker is killed ----
for signal in KILL SEGV KILL; do
    before=$broker
    kill -$signal "$broker"
    until_ other_broker || exit 1
    [ "$keeper" = $pid ] || fail "the keeper has changed"
done
says 'ended by signal 9' || fail "nobody said how the broker ended"
for signal in TERM INT HUP ABRT; do
    kill -$signal "$broker"
done
before=$broker
look && [ "$broker" = "$before" ] || fail "a signal that is for the keeper ended the broker"

# ---- it cannot start again, for a while ----
before=$broker
# its ledger finds no addresses
prlimit --pid "$keeper" --as=50331648:
kill -KILL "$broker"
until_ says 'before it served' || exit 1
kill -0 $pid || fail "the keeper gave up"
timeout 60 "${run[@]/now.conf/good.conf}" 2>/dev/null
[ $? = 4 ] || fail "another broker could start at the same place"
prlimit --pid "$keeper" --as=unlimited:
until_ other_broker || exit 1

# ---- the keeper is killed: its broker takes its place ----
for _ in 1 2; do
    before=$broker
    kill -KILL "$keeper"
    until_ other_broker || exit 1
    [ "$keeper" = "$before" ] || fail "the keeper is $keeper and not $before, which was the broker"
    timeout 60 "${run[@]}" 2>/dev/null
    [ $? = 4 ] || fail "another broker could start at the same place"
done
wait $pid 2>/dev/null

# ---- and all of it ends in order, and is not lost before that is said ----
"$memctl" alloc --pages base --size 1M --name lost >/dev/null || fail "memctl alloc"
kill "$keeper"
until_ gone "$keeper"
until_ gone "$broker"
[ ! -e s ] && [ ! -e s.lock ] || fail "files were left"
says 'warning: nobody keeps .* it is lost, except what is mapped: 1 buffer with 1048576 bytes, 1 name, [01] sessions*$' ||
    fail "nobody said what is lost: $(cat log)"
keeper=0

# ---- a signal at any time: nothing is left ----
for delay in 0 0.01 0.02 0.03 0.05 0.1; do
    "${run[@]}" 2>log &
    pid=$!
    until [ -e s ] || gone $pid; do :; done
    sleep $delay
    kill $pid
    wait $pid
    status=$?
    [ $status = 0 ] || [ $status = 143 ] || fail "SIGTERM after $delay s: status $status: $(cat log)"
    until_ no_broker
done

# ---- in the background, neither keeps the starter's output open ----
export XDG_RUNTIME_DIR=$dir/runtime
mkdir -m 700 "$XDG_RUNTIME_DIR"
MEMORYD_SOCKET=$XDG_RUNTIME_DIR/memoryd/memoryd.sock
timeout 60 "$memoryd" --autostart --config "$dir/good.conf" 2>&1 | cat >log
[ "${PIPESTATUS[0]}" = 0 ] || fail "--autostart: $(cat log)"
until_ look || exit 1
before=$broker
kill -KILL "$broker"
until_ other_broker
kill "$keeper"
until_ gone "$keeper"
keeper=0

[ $faults = 0 ] && echo "whoever is killed, somebody serves"
exit $((faults != 0))
