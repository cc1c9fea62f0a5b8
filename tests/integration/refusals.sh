#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the log says of refusals, at level info: who, by the kernel's word, what, which limit or right, and the numbers;
# not more than so much of one user, and of another user all the same; and nothing that a client chooses looks like a
# line of somebody else. And what it says of a start.
set -u

. "${srcdir:?}/tests/support/broker.sh"
export PATH=$builddir/client/memctl:$PATH
uid=$(id -u)

fail() {
    echo "refusals.sh: line ${BASH_LINENO[0]}: $*" >&2
    cat "$dir/log" >&2
    exit 1
}

# refused COMMAND...: it is
refused() { "$@" >"$dir/out" 2>&1 && fail "$* is not refused" || :; }
logged() { grep -qE -- "$1" "$dir/log" || fail "the log does not say: $1"; }
unlogged() { ! grep -qE -- "$1" "$dir/log" || fail "the log says: $1"; }
# the name that the kernel has of memctl here, which may be run by a script
client='client [0-9]+ "(lt-)?memctl" of uid'
crowd='client [0-9]+ "(lt-)?crowd" of uid'

begin() { # LEVEL [KEY = VALUE in limits...]
    local level=$1
    shift
    printf '%s\n' "$ordinary_pages" '[limits]' "$@" >"$dir/config"
    MEMORYD_LOG=$level begin_broker "$builddir/daemon/memoryd" --config "$dir/config"
}
# what is left when a test fails
trap '[ -z "${holder-}" ] || kill "$holder"; [ -z "$broker" ] || { kill "$broker" && wait "$broker"; }; rm -rf "$dir"' EXIT
end() { kill "$broker" && wait "$broker"; broker=; }

# ---- who, what, which limit or right, the numbers ----
begin info 'uid_bytes = 8M' 'session_buffers = 2' 'uid_names = 1'
logged "^memoryd: configuration: $dir/config\$"
logged '^memoryd: pool node0-4k: node 0, base pages of 4 KiB, capacity [0-9]+ MiB, stock up to [0-9]+ MiB$'
unlogged recovered
refused memctl alloc --size 9M --name a
logged "^memoryd: $client $uid: alloc is refused: LIMIT: user $uid has 0 bytes .* asks for 9437184 bytes more, but may have 8388608 bytes; .* uid_bytes in \[limits\]"
memctl alloc --size 4K --name a >/dev/null || fail "alloc"
refused memctl alloc --size 4K --name b
logged "^memoryd: $client $uid: [a-z_]+ is refused: LIMIT: user $uid has 1 names and asks for 1 more, but may have 1; .* uid_names in \[limits\]"
refused memctl alloc --size 900T
logged "^memoryd: $client $uid: alloc is refused: (TOO_BIG|LIMIT): "
refused memctl open nothing-like-that
unlogged NO_SUCH_NAME # an answer, which may be asked for again and again
if [ "$uid" = 0 ]; then
    # a right; and a stranger, whose name for itself is meant to look like the end of a line and another line
    chmod 711 "$dir"
    stranger() { setpriv --reuid=60001 --regid=60001 --clear-groups "$@"; }
    program=$dir/$'x" of u\nmem\\'
    cp "$builddir/client/memctl/.libs/memctl" "$program" 2>/dev/null || cp "$builddir/client/memctl/memctl" "$program"
    export LD_LIBRARY_PATH=$builddir/client/.libs
    refused stranger "$program" check
    logged '^memoryd: client [0-9]+ "x\\x22 of u\\x0amem\\x5c" of uid 60001: check is refused: NOT_ADMIN: only root'
    [ "$(grep -c 'check is refused' "$dir/log")" = 1 ] && unlogged '^mem\\\\' || fail "a program's name made a line"
    refused stranger "$program" cat uid:0/a
    logged ' of uid 60001: [a-z_]+ is refused(: | for )NO_RIGHT: '
    # one user's flood, and another user
    for _ in $(seq 12); do refused stranger "$program" check; done
    [ "$(grep -c ' of uid 60001: ' "$dir/log")" = 10 ] || fail "$(grep -c ' of uid 60001: ' "$dir/log") lines of one user"
    logged '^memoryd: clients of uid 60001 cause many lines; '
    refused setpriv --reuid=60065 --regid=60065 --clear-groups "$program" check
    logged ' of uid 60065: check is refused: '
    unset LD_LIBRARY_PATH
fi

# ---- what the next broker finds ----
kill -KILL "$(memctl --json status | jq '.[0].broker_pid')"
memctl status >/dev/null || fail "no next broker"
logged '^memoryd: recovered: 1 buffer \(0 of them detached\), 4096 bytes, [0-9]+ sessions?, 1 name$'
end

# ---- who is not let in ----
begin info 'connections = 1'
mkfifo "$dir/end"
perl -MSocket -e 'for (;;) { socket(S, AF_UNIX, 5, 0) && connect(S, pack_sockaddr_un($ARGV[0])) or exit 1; sysread(S, $_, 1) }' \
    "$MEMORYD_SOCKET" &
holder=$!
crowded='the broker has as many connections as it may have; .* connections in \[limits\]'
for _ in $(seq 600); do
    # an administrator's memctl would be let in, and so is this where it comes before the one that stays
    "$builddir/tests/integration/crowd" 1 </dev/null >"$dir/out" 2>&1
    grep -qE "$crowded" "$dir/log" && break
done
logged "^memoryd: $crowd $uid: hello is refused: LIMIT: $crowded"
kill $holder
wait $holder
end

begin info 'uid_sessions = 1'
rm -f "$dir/begun"
memctl alloc --size 4K --name a >/dev/null || fail "alloc"
memctl open a sh -c "echo begun >$dir/begun; read -r _ <$dir/end" &
holder=$!
until [ -e "$dir/begun" ]; do kill -0 $holder || fail "no client"; sleep 0.02; done
refused "$builddir/tests/integration/crowd" 1 </dev/null
logged "^memoryd: $crowd $uid: hello is refused: LIMIT: user $uid has 1 .* asks for 1 more, but may have 1; .* uid_sessions in \[limits\]"
echo >"$dir/end"
wait $holder || fail "the holder failed"
holder=
end

# ---- at the default level there is none of it ----
begin notice 'uid_bytes = 8M'
refused memctl alloc --size 9M --name a
unlogged refused
end

echo "refusals.sh: everything as promised"
