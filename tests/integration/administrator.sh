#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# An administrator always gets in: when programs, the administrator's own included, have taken all sessions, all
# connections, or all descriptors of the broker, memctl still answers. Others hear which limit it is, with exit status 1.
set -u

. "${srcdir:?}/tests/support/broker.sh"
# strangers may not look into the folder where all was built
cp "$builddir/client/memctl/.libs/memctl" "$builddir/tests/integration/.libs/crowd" "$dir" &&
    cp "$builddir"/client/.libs/libmemclient.so* "$dir" || exit 1
chmod 711 "$dir"
export LD_LIBRARY_PATH=$dir
memctl() { "$dir/memctl" "$@"; }
crowds=()
trap 'kill "${crowds[@]}" 2>/dev/null; kill "$broker" && wait "$broker"; rm -rf "$dir"' EXIT

fail() {
    echo "administrator.sh: line ${BASH_LINENO[0]}: $*" >&2
    cat "$dir/said" >&2
    tail -n 20 "$dir/log" >&2
    exit 1
}

# begin DESCRIPTORS [KEY = VALUE in limits...]
begin() {
    local descriptors=$1
    shift
    printf '%s\n' "$ordinary_pages" '[limits]' "$@" >"$dir/config"
    begin_broker bash -c 'ulimit -n "$1" && shift && exec "$@"' - "$descriptors" "$builddir/daemon/memoryd" \
        --config "$dir/config"
}
end() {
    kill "${crowds[@]}"
    wait "${crowds[@]}" 2>/dev/null
    crowds=()
    kill "$broker" && wait "$broker"
    broker=
}
# crowd [AS...] SESSIONS [BUFFERS]: what it has got is in $dir/crowd
crowd() {
    local as=()
    [ "$1" != stranger ] || { as=(setpriv --reuid=60001 --regid=60001 --clear-groups); shift; }
    : >"$dir/crowd"
    "${as[@]}" "$dir/crowd.program" "$@" <&3 >"$dir/crowd" 2>&1 &
    crowds+=($!)
    for _ in $(seq 1200); do [ -s "$dir/crowd" ] && return; sleep 0.05; done
    fail "no crowd"
}
mv "$dir/crowd" "$dir/crowd.program"
# an input without an end
mkfifo "$dir/end" && exec 3<>"$dir/end" || exit 1
: >"$dir/said"

gets_in() {
    for _ in $(seq 20); do
        timeout 60 "$dir/memctl" status >"$dir/out" 2>"$dir/said" || fail "exit status $?: the administrator is not let in"
    done
    timeout 60 "$dir/memctl" --json sessions >"$dir/out" 2>"$dir/said" || fail "the administrator sees no sessions"
}
# another one, who is none, hears that SENTENCE
hears() {
    local got
    [ "$(id -u)" = 0 ] || return
    timeout 60 setpriv --reuid=60001 --regid=60001 --clear-groups "$dir/memctl" status >"$dir/out" 2>"$dir/said"
    got=$?
    [ $got = 1 ] || fail "exit status $got instead of 1"
    grep -qE "^memctl: status: $1" "$dir/said" || fail "it does not hear: $1"
}
uid=$(id -u)

# ---- all sessions ----
begin 4096 'uid_sessions = 4'
crowd 100
grep -q "^4 0 user $uid has 4 sessions" "$dir/crowd" || fail "a program has more than its limit: $(cat "$dir/crowd")"
gets_in
if [ "$uid" = 0 ]; then
    crowd stranger 100
    grep -q "^4 0 user 60001 has 4 sessions" "$dir/crowd" || fail "a stranger has more: $(cat "$dir/crowd")"
    hears 'user 60001 has 4 sessions and asks for 1 more, but may have 4; .* uid_sessions in \[limits\]'
    gets_in
fi
end

# ---- all connections ----
begin 4096 'connections = 5'
crowd 100
grep -q "^5 0 the broker has as many connections as it may have; .*connections in \[limits\]" "$dir/crowd" ||
    fail "not 5 connections: $(cat "$dir/crowd")"
gets_in
hears 'the broker has as many connections as it may have; .*connections in \[limits\]'
end

# ---- all descriptors: by buffers, then by sessions ----
begin 600 'uid_buffers = 100000'
crowd 1 100000
grep -q "^1 4[0-9]* memoryd may have no more descriptors\|^1 5[0-9]* memoryd may have no more descriptors" "$dir/crowd" ||
    fail "not all descriptors: $(cat "$dir/crowd")"
gets_in
crowd 200
grep -q "^[1-9][0-9]* 0 the broker has hardly any descriptors left; .*LimitNOFILE" "$dir/crowd" ||
    fail "not all descriptors: $(cat "$dir/crowd")"
# for a moment workers have some of them, who look at the control groups of those that have come: until nobody gets in
for _ in $(seq 20); do
    crowd 200
    ! grep -q "^0 0 the broker has hardly any descriptors left" "$dir/crowd" || break
done
gets_in
hears 'the broker has hardly any descriptors left; .*LimitNOFILE'
end
trap 'rm -rf "$dir"' EXIT
echo "administrator.sh: everything as promised"
