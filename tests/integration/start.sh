#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Starting memoryd, rightly and wrongly: options, configuration, a socket file that is stale, in use, or not ours, no
# permission, and many starters at once. Each mistake has its exit status and a sentence.
set -u

memoryd=${MEMORYD:-$builddir/daemon/memoryd}
[ -x "$memoryd" ] || { echo "there is no $memoryd"; exit 99; }
dir=$TMPDIR/start
mkdir "$dir"
cd "$dir" || exit 99
faults=0
pids=()

fail() {
    echo "FAILED: $*"
    faults=$((faults + 1))
}

# expect STATUS PATTERN ARGUMENTS...: memoryd ends by itself with that status and says something like that
expect() {
    local status=$1 pattern=$2 said
    shift 2
    said=$(timeout 60 "$memoryd" "$@" 2>&1)
    local got=$?
    [ $got = "$status" ] || fail "memoryd $*: exit status $got instead of $status: $said"
    grep -q -- "$pattern" <<<"$said" || fail "memoryd $*: \"$pattern\" is not in: $said"
}

# start ARGUMENTS...: in the background, until its log says that it serves; its pid is in $pid
start() {
    : >log
    "$memoryd" "$@" 2>>log &
    pid=$!
    pids+=($pid)
    for _ in $(seq 300); do
        grep -q 'is listening on' log && return 0
        kill -0 $pid 2>/dev/null || break
        sleep 0.1
    done
    fail "memoryd $* does not serve: $(cat log)"
    return 1
}

# it ends in order on SIGTERM
stop() {
    kill "$pid"
    wait "$pid" || fail "memoryd ended with status $?: $(cat log)"
}

# crash PID...: keepers and their brokers at once, so that nothing goes on. Returns when the brokers are gone, too:
# whoever kills is not told when a process has closed what it had.
crash() {
    local p broker brokers=()
    for p; do
        kill -STOP "$p" 2>/dev/null && brokers+=($(pgrep -P "$p")) && pkill -KILL -P "$p"
        kill -KILL "$p" 2>/dev/null
    done
    for broker in "${brokers[@]}"; do
        for _ in $(seq 600); do
            [ -e "/proc/$broker" ] || break
            sleep 0.05
        done
    done
}

cleanup() {
    crash "${pids[@]}"
}
trap cleanup EXIT

printf '[arena]\nbase = 0x566000000000\nsize = 128G\n' >good.conf
run=(--config "$dir/good.conf" --socket "$dir/s")

# ---- options ----
expect 0 '^memoryd [0-9]' --version
expect 0 '--autostart' --help
expect 2 'Try "memoryd --help"' --nonsense
expect 2 'is not an option' surplus
expect 2 'Try' --socket

# ---- configuration ----
expect 0 '^$' --check-config --config good.conf
printf '[arena]\nbaes = 1\n\n[limits]\nuid_buffers = -3\n[nonsense]\n' >bad.conf
expect 3 '^bad.conf:2: \[arena\] baes: no such key; did you mean base?' --check-config --config bad.conf
expect 3 '^bad.conf:5: \[limits\] uid_buffers: "-3" is not a number from 1' --check-config --config bad.conf
expect 3 '^bad.conf:6: \[nonsense\]: no such section' --check-config --config bad.conf
expect 3 'No such file' --check-config --config absent.conf
expect 3 'baes' --config bad.conf --socket "$dir/s"
printf '[pools]\ncapacity = 900T\n[arena]\nsize = 99999T\n' >absurd.conf
expect 3 '^absurd.conf:4: \[arena\] size: "99999T" is not a size from 1G' --check-config --config absurd.conf
printf '[pool far]\nnodes = 63\n' >far.conf
expect 3 '63' --config far.conf --socket "$dir/s"
[ ! -e s ] || fail 'a broker that did not start left its socket'

# ---- the socket ----
expect 1 'is not an absolute path' --config good.conf --socket s
expect 1 'bytes, and the kernel takes' --config good.conf --socket "/$(printf 'a%.0s' $(seq 200))"
expect 1 'cannot make the folder' --config good.conf --socket /nonexistent/a/b/s
echo precious >file
expect 1 'is not a socket' --config good.conf --socket "$dir/file"
[ "$(cat file)" = precious ] || fail 'a file was replaced'
mkdir -m 777 open
expect 1 'others may write to the folder' --config good.conf --socket "$dir/open/s"

if start "${run[@]}"; then
    expect 4 'already running' "${run[@]}"
    kill -0 "$pid" || fail 'the first broker did not survive the second'
    # stale: its file outlives it
    crash "$pid"
    wait "$pid" 2>/dev/null
    [ -S s ] || fail 'no socket file was left'
    start "${run[@]}" && stop
    [ ! -e s ] && [ ! -e s.lock ] || fail 'files were left after an orderly end'
fi

if [ "$(id -u)" = 0 ]; then
    stranger=(setpriv --reuid=60001 --regid=60001 --clear-groups)
    chmod 711 "$dir"
    mkdir -m 700 closed
    said=$("${stranger[@]}" "$memoryd" --config /dev/null --socket "$dir/closed/s" 2>&1)
    grep -q 'Permission denied\|not a file' <<<"$said" || fail "no permission: $said"
    # a socket of another user in a folder where both may write
    mkdir -m 1777 shared
    "${stranger[@]}" "$memoryd" --config good.conf --socket "$dir/shared/s" 2>other.log &
    other=$!
    pids+=($other)
    for _ in $(seq 300); do grep -q 'is listening on' other.log && break; sleep 0.1; done
    grep -q 'is listening on' other.log || fail "as another user: $(cat other.log)"
    expect 1 'not a file of ours\|belongs to\|Permission denied' --config good.conf --socket "$dir/shared/s"
    crash $other
    wait $other 2>/dev/null
    rm -f shared/s.lock
    expect 1 'not ours to replace' --config good.conf --socket "$dir/shared/s"
fi

# ---- a private broker that clients start ----
mkdir -p "$XDG_RUNTIME_DIR"
printf '[arena]\nbase = 0x566000000000\nsize = 128G\n[broker]\nidle_exit = 10min\n' >private.conf
statuses=()
starters=()
echo x >precious
for _ in 1 2 3 4 5 6 7 8; do
    "$memoryd" --autostart --config "$dir/private.conf" 2>>auto.log 7<precious &
    starters+=($!)
done
for p in "${starters[@]}"; do
    wait "$p"
    statuses+=($?)
done
[ "${statuses[*]}" = '0 0 0 0 0 0 0 0' ] || fail "starters ended with ${statuses[*]}: $(cat auto.log)"
socket=$XDG_RUNTIME_DIR/memoryd/memoryd.sock
[ -S "$socket" ] || fail 'no private broker was started'
for private in $(grep -lazs -- "$dir/private.conf" /proc/[0-9]*/cmdline | cut -d/ -f3); do
    ls -l "/proc/$private/fd" | grep -q precious && fail "a descriptor of the starter was inherited"
done
n=$(grep -lazs -- '--autostart' /proc/[0-9]*/cmdline 2>/dev/null |
    while read -r f; do
        grep -qazs -- "$dir/private.conf" "$f" && ! grep -qazs -- '--broker=' "$f" && echo "$f"
    done | wc -l)
[ "$n" = 1 ] || fail "$n private keepers instead of one"
private_ends() {
    for _ in $(seq 300); do
        [ -e "$socket" ] || return
        sleep 0.1
    done
    fail 'the private broker does not end'
}
grep -lazs -- "$dir/private.conf" /proc/[0-9]*/cmdline | cut -d/ -f3 | xargs kill
private_ends
# it ends some time after its last client; and each of its brokers finds the configuration where the starter meant it to be
sed -i 's/10min/1s/' private.conf
"$memoryd" --autostart --config private.conf || fail "a relative path of the configuration: exit status $?"
private_ends

(unset XDG_RUNTIME_DIR; expect 2 'XDG_RUNTIME_DIR is not set' --autostart --config good.conf; exit $faults) || faults=$?

# ---- for the service manager ----
if command -v systemd-socket-activate >/dev/null; then
    rm -f act
    systemd-socket-activate --seqpacket -l "$dir/act" "$memoryd" --config "$dir/good.conf" 2>act.log &
    pid=$!
    pids+=($pid)
    for _ in $(seq 300); do [ -S act ] && break; sleep 0.1; done
    # the first connection starts it
    perl -MSocket -e 'socket(S, AF_UNIX, 5, 0) && connect(S, pack_sockaddr_un($ARGV[0])) or exit 1; sleep 60' "$dir/act" &
    client=$!
    pids+=($client)
    for _ in $(seq 300); do grep -q 'is listening on' act.log && break; sleep 0.1; done
    grep -q 'is listening on' act.log || fail "socket activation: $(cat act.log)"
    kill $client
    kill $pid
    wait $pid || fail "it did not end in order: $(cat act.log)"
else
    echo 'socket activation was not tried: there is no systemd-socket-activate'
fi

exit $((faults != 0))
