#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Hosts of plug-ins load a library, use it and drop it. Those that can go, go: with the session, the descriptors and the
# mappings, but for memory that is still mapped, which stays as it is until that ends. Those that stay loaded have one
# session, and no more descriptors however often. What the host itself sees is in unload.c.
set -euo pipefail
command -v jq >/dev/null || { echo "jq is not installed"; exit 77; }
[ "${SANITIZERS:-no}" = no ] || { echo "libraries of sanitizers do not go"; exit 77; }
# shellcheck source=tests/support/broker.sh
source "${srcdir:?}/tests/support/broker.sh"

export LD_LIBRARY_PATH=$builddir/client/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
host=$builddir/tests/integration/unload
failed=0
fail() {
    echo "FAIL: $*"
    failed=1
}
memctl() { "$builddir/client/memctl/memctl" "$@"; }
# the host's, at the broker
sessions() { memctl --json sessions | jq '[.[] | select(.program == "unload")] | length'; }
connected() { memctl --json sessions | jq '[.[] | select(.program == "unload" and .connected)] | length'; }
requests() { memctl --json status | jq '.[0].requests'; }
buffers() { memctl --json status | jq '.[0] | .buffers + .buffers_detached + .buffers_ending'; }

# within WHAT VALUE COMMAND...: it says that in the end
within() {
    local what=$1 value=$2
    shift 2
    for _ in $(seq 600); do
        [ "$("$@")" != "$value" ] || return 0
        sleep 0.1
    done
    fail "$what: $("$@"), not $value"
}

# begin LIBRARY USE ANSWER: the host waits, having said that the library is gone or stays
begin() {
    coproc "$host" "$builddir/client/.libs/$1.so" "$2" 2>"$dir/said"
    pid=$COPROC_PID
    from=${COPROC[0]} to=${COPROC[1]}
    answer=
    read -r answer <&"$from" || :
    [ "$answer" = "$3" ] && return
    fail "$1, $2: the host says \"$answer\", not \"$3\": $(cat "$dir/said")"
    kill "$pid" 2>/dev/null || :
    wait "$pid" || :
    return 1
}
end() {
    eval "exec $to>&-"
    wait "$pid" || fail "$1, $2: the host ends with $?: $(cat "$dir/said")"
}

printf '%s\n[session]\ngrace = 1s\n' "$ordinary_pages" >"$dir/config"
begin_broker "$builddir/daemon/memoryd" --config "$dir/config"

for line in 'libmemclient native' 'libmemclient-hsa hsa' 'libmemclient-hsa handlers' 'libmemclient-nbla nbla'; do
    read -r library use <<<"$line"
    begin "$library" "$use" gone || continue
    within "$library: sessions" 0 sessions
    within "$library: buffers" 0 buffers
    end "$library" "$use"
done
for line in 'libmemclient-umf umf' 'libmemclient-umf-provider provider' 'libmemclient-opencl svm'; do
    read -r library use <<<"$line"
    begin "$library" "$use" stays || continue
    within "$library: sessions" 1 sessions
    within "$library: buffers" 0 buffers
    # a process that ends says nothing, and waits for nothing: its other threads may still be at work
    first=$(requests) second=$(requests)
    end "$library" "$use"
    [ $(($(requests) - second)) = $((second - first)) ] || fail "$library: the host's end made calls"
    within "$library: sessions after its end" 0 sessions
done

# What is still mapped is not taken away, however long that is after the grace; then it is freed, and its session goes.
if begin libmemclient kept gone; then
    within 'connections of what is kept' 0 connected
    sleep 2
    [ "$(buffers)" = 20 ] || fail "of 20 buffers that are mapped $(buffers) are left"
    echo >&"$to"
    read -r answer <&"$from" || fail "what was kept: $(cat "$dir/said")"
    within 'buffers that were kept' 0 buffers
    within 'sessions of what was kept' 0 sessions
    end libmemclient kept
fi

memctl check >"$dir/check" || fail "$(cat "$dir/check")"
[ $failed != 0 ] || echo "libraries go, or stay as they are"
exit $failed
