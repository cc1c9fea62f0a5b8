#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# memctl upgrade: the program that is installed now takes the place of the one that runs, at the same socket and under
# the same keeper, again and again, and what clients have stays theirs; where there is none, the one that runs goes on.
set -u

. "${srcdir:?}/tests/support/broker.sh"
export PATH=$builddir/client/memctl:$PATH

hogs=()

fail() {
    [ ${#hogs[@]} = 0 ] || kill "${hogs[@]}" 2>/dev/null
    echo "upgrade.sh: line ${BASH_LINENO[0]}: $*" >&2
    cat "$dir/log" >&2
    exit 1
}

# what the broker says of itself under this key
status() { memctl --json status | jq -r ".[0].$1"; }

# upgrade [OPTIONS]: by memctl; what it said is in $dir/out
upgrade() { memctl "$@" upgrade >"$dir/out" || fail "memctl upgrade: exit status $?"; }

install() { cp "$builddir/daemon/memoryd" "$dir/new" && mv "$dir/new" "$dir/memoryd"; }

install
begin_broker "$dir/memoryd"
version=$(status version)
keeper=$(status keeper_pid)

# ---- what a client has: a named buffer, a claim on it, and a descriptor that is read at the very end ----
memctl alloc --size 1M --name kept >/dev/null && echo hello | memctl fill kept || fail "no buffer"
token=$(memctl share kept) && memctl rm "$token" || fail "no token"
mkfifo "$dir/end"
memctl open --claim exclusive kept sh -c "echo begun >$dir/begun; read -r _ <$dir/end; head -c 5 <&\$MEMORYD_FD >$dir/read" &
client=$!
until [ -e "$dir/begun" ]; do kill -0 $client || fail "no client"; sleep 0.02; done

# ---- to the same program ----
before=$(status broker_pid)
upgrade
grep -qx "memoryd $version (was $version): 1 buffer, 1 session kept, [0-9]* ms" "$dir/out" ||
    fail "it said: $(cat "$dir/out")"
[ "$(status broker_pid)" != "$before" ] || fail "the same broker serves"
[ "$(status keeper_pid)" = "$keeper" ] || fail "another keeper is there"

# ---- to another one in its place, many times ----
for _ in 1 2 3; do
    before=$(status broker_pid)
    install
    upgrade --json
    after=$(status broker_pid)
    jq -e '.[0] | .version == "'"$version"'" and .was_version == .version and .broker_pid == '"$after"'
           and .was_broker_pid == '"$before"' and .buffers == 1 and .sessions == 1 and .ms >= 0' "$dir/out" >/dev/null || fail "it said: $(cat "$dir/out")"
    [ "$(readlink -f "/proc/$keeper/exe")" = "$(readlink -f "$dir/memoryd")" ] || fail "the keeper is not the new program"
    [ "$(readlink -f "/proc/$after/exe")" = "$(readlink -f "$dir/memoryd")" ] || fail "the broker is not the new program"
    [ "$(status keeper_pid)" = "$keeper" ] || fail "another keeper is there"
done

# ---- all of it is there ----
memctl open --claim shared kept 2>"$dir/out" && fail "the claim is gone"
grep -q "has an exclusive claim" "$dir/out" || fail "it said: $(cat "$dir/out")"
memctl cat "$token" 2>"$dir/out" && fail "a revoked token opened the buffer"
grep -q revoked "$dir/out" || fail "it said: $(cat "$dir/out")"
[ "$(memctl cat kept | head -c 5)" = hello ] || fail "the buffer has other contents"
echo >"$dir/end"
wait $client || fail "the client failed"
[ "$(cat "$dir/read")" = hello ] || fail "the client read $(cat "$dir/read")"
memctl open --claim exclusive kept >/dev/null || fail "the claim did not end with its process"
[ "$(memctl --json check | jq '.[0].faults')" = 0 ] || fail "the sums do not agree"

# ---- while much memory is on its way back, by workers that get hardly a processor: nobody waits for them ----
used() { memctl --json pools | jq '[.[].used] | add'; }
threads_of() { (cd "/proc/$1/task" && echo *); }
used=$(used)
memctl alloc --pages base --size 1G --name back/1 >/dev/null || fail "no buffer"
memctl alloc --pages base --size 1G --name back/2 --publishable >/dev/null && memctl publish back/2 || fail "no buffer"
memctl cat back/1 | head -c 1 >/dev/null
before=$(status broker_pid)
for thread in $(threads_of "$before"); do
    [ "$thread" = "$before" ] || { chrt --idle --pid 0 "$thread" && taskset --cpu-list --pid 0 "$thread" >/dev/null; } ||
        fail "thread $thread cannot be slowed down"
done
for _ in 1 2 3 4; do taskset --cpu-list 0 sh -c 'while :; do :; done' & hogs+=($!); done
memctl rm back/1 && memctl rm back/2 || fail "memctl rm"
upgrade
kill "${hogs[@]}"
hogs=()
[ "$(status broker_pid)" != "$before" ] || fail "the same broker serves"
grep "does not stop" "$dir/log" && fail "a broker was killed"
[ "$(memctl --json check | jq '.[0].faults')" = 0 ] || fail "the sums do not agree"
for _ in $(seq 1200); do [ "$(used)" != "$used" ] || break; sleep 0.05; done
[ "$(used)" = "$used" ] || fail "not all memory is back: $(memctl pools)"
[ "$(memctl --json check | jq '.[0].faults')" = 0 ] || fail "the sums do not agree"

# ---- what is there is no program that could go on: the one that runs does, without a break ----
# refused WHAT SENTENCE: at once, with the reason
refused() {
    memctl upgrade 2>"$dir/out"
    [ $? = 1 ] || fail "an upgrade to $1 worked"
    grep -q "$2" "$dir/out" || fail "$1: it said: $(cat "$dir/out")"
    grep -q "no upgrade" "$dir/log" || fail "$1: the log does not say why"
    : >"$dir/log"
    [ "$(status broker_pid)" = "$before" ] || fail "$1: another broker serves"
}
before=$(status broker_pid)
rm "$dir/memoryd"
refused nothing "No such file"
head -c 100 /dev/zero >"$dir/memoryd"
refused "what cannot be executed" "Permission denied"
chmod +x "$dir/memoryd"
refused "no program" "Exec format error"
printf '#!/bin/sh\necho "memoryd: libevent.so: cannot open shared object file" >&2; exit 127\n' >"$dir/memoryd"
refused "a program without its libraries" "the one that runs goes on"
install
upgrade
[ "$(memctl cat kept | head -c 5)" = hello ] || fail "the buffer has other contents"

echo "upgrade.sh: everything as promised"
