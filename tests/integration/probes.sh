#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The static probes: the program has those of memoryd(8), each once and with as many arguments, and where gdb may attach
# to a broker, they say what it does.
set -u

. "${srcdir:?}/tests/support/broker.sh"
. "$srcdir/tests/support/expect.sh"
PATH=$builddir/client/memctl:$PATH

skip() { echo "skipped: $*"; exit 77; }
grep -q '^#define PROBES 1$' "$builddir/config.h" || skip 'built without probes (sys/sdt.h)'
command -v readelf >/dev/null || skip 'no readelf'

# ---- names and numbers of arguments ----
LC_ALL=C readelf -n "$builddir/daemon/memoryd" 2>/dev/null |
    awk '/^ *Provider: / { provider = $2 } /^ *Name: / { name = $2 }
         /^ *Arguments:/ && provider == "memoryd" { print name, NF - 1 }' | sort -u >"$dir/built" # a compiler may copy one
sed -n '/^# PROBES/,/^# FILES/p' "$srcdir/daemon/memoryd.8.scd" |
    awk '/^\*[a-z_]+\*( _[a-z]+_)*$/ { gsub(/\*/, "", $1); print $1, NF - 1 }' | sort >"$dir/documented"
[ -s "$dir/documented" ] || fail 'the manual has no probes'
diff "$dir/documented" "$dir/built" >"$dir/out" || fail 'the manual (<) and the program (>) have other probes'
# each has an example
while read -r probe _; do
    sed -n '/^# PROBES/,/^# FILES/p' "$srcdir/daemon/memoryd.8.scd" |
        grep -Eq "^	(bpftrace|perf|gdb|stap|usdt).*[:(\"]$probe" || fail "$probe has no example"
done <"$dir/documented"

# ---- what they say ----
command -v gdb >/dev/null || { echo 'probes.sh: they are as documented; no gdb looked at what they say'; exit 0; }
printf '[pools]\npages = base\ncapacity = 16M\nstock = 0\n' >"$dir/config"
begin_broker "$builddir/daemon/memoryd" --config "$dir/config"

# on PROBE FORMAT ARGUMENTS [continue]: gdb prints that there
on() {
    printf 'break -probe-stap memoryd:%s\ncommands\nsilent\nprintf "%s %s\\n", %s\n%s\nend\n' \
        "$1" "$1" "$2" "$3" "${4-continue}"
}
text() { printf '(char *)$_probe_arg%d' "$1"; }
{
    printf 'set pagination off\nset confirm off\nset width 0\n'
    on request_begin '%s %lu %lu %u %d' "$(text 0), \$_probe_arg1, \$_probe_arg2, \$_probe_arg3, \$_probe_arg4"
    on request_end '%s %lu %lu %d' "$(text 0), \$_probe_arg1, \$_probe_arg2, \$_probe_arg3"
    on buffer_alloc '%lu %lu %u' '$_probe_arg0, $_probe_arg1, $_probe_arg2'
    on buffer_free '%lu %lu %u' '$_probe_arg0, $_probe_arg1, $_probe_arg2'
    on buffer_credit '%lu %lu %u' '$_probe_arg0, $_probe_arg1, $_probe_arg2'
    on session_begin '%lu %u %u %s' "\$_probe_arg0, \$_probe_arg1, \$_probe_arg2, $(text 3)"
    on session_end '%lu %u %u %d %u' '$_probe_arg0, $_probe_arg1, $_probe_arg2, $_probe_arg3, $_probe_arg4'
    on wait_begin '%lu %lu %u %s %lu' "\$_probe_arg0, \$_probe_arg1, \$_probe_arg2, $(text 3), \$_probe_arg4"
    on wait_end '%lu %lu %u %s %d' "\$_probe_arg0, \$_probe_arg1, \$_probe_arg2, $(text 3), \$_probe_arg4"
    # the last one: gdb leaves
    on request_refused '%s %lu %u %u %s' "$(text 0), \$_probe_arg1, \$_probe_arg2, \$_probe_arg3, $(text 4)" ''
    printf 'echo attached\\n\ncontinue\ndetach\n'
} >"$dir/gdb"

: >"$dir/traced"
gdb -nx -q -batch -p "$(memctl --json status | jq '.[0].broker_pid')" -x "$dir/gdb" >"$dir/traced" 2>&1 </dev/null &
gdb=$!
# under sanitizers it reads symbols for long
until grep -q '^attached' "$dir/traced"; do
    if ! kill -0 "$gdb" 2>/dev/null; then
        grep -q 'ptrace: Operation not permitted' "$dir/traced" || { cp "$dir/traced" "$dir/out"; fail 'gdb did not attach'; }
        echo 'probes.sh: they are as documented; gdb may not attach here to look at what they say'
        exit 0
    fi
    sleep 0.05
done

uid=$(id -u)
# traced PATTERN: gdb has printed a line like that, soon
traced() {
    for _ in $(seq 1200); do grep -Eq -- "^$1\$" "$dir/traced" && return; sleep 0.05; done
    cp "$dir/traced" "$dir/out"
    fail "not traced: $1"
}
expect 0 memctl alloc --size 12M --name big
big=$(cat "$dir/out")
traced "session_begin [0-9]+ $uid [0-9]+ memctl"
session=$(sed -n 's/^session_begin \([0-9]*\) .*/\1/p' "$dir/traced" | tail -n 1)
pid=$(sed -n 's/^session_begin [0-9]* [0-9]* \([0-9]*\) .*/\1/p' "$dir/traced" | tail -n 1)
traced "request_begin hello 0 [0-9]+ $uid $pid"
traced "request_begin alloc $session [0-9]+ $uid $pid"
traced "request_end alloc $session [0-9]+ 0"
traced "buffer_alloc $big $((12 << 20)) $uid"
traced "session_end $session $uid $pid 1 [0-9]+"

memctl alloc --size 8M --wait 100s --name late >"$dir/late" 2>&1 &
late=$!
traced "wait_begin [0-9]+ [0-9]+ $uid node0-4k $((8 << 20))"
expect 0 memctl rm "$big"
traced "buffer_free $big $((12 << 20)) $uid"
traced "buffer_credit $big $((12 << 20)) $uid"
traced "wait_end [0-9]+ [0-9]+ $uid node0-4k 0"
wait "$late" || fail "it was not served: $(cat "$dir/late")"
traced "buffer_alloc $(cat "$dir/late") $((8 << 20)) $uid"

expect 1 memctl alloc --size 12M
traced "request_refused alloc [0-9]+ $uid [1-9][0-9]* 12582912 bytes do not fit into pool node0-4k.*"
wait "$gdb" || { cp "$dir/traced" "$dir/out"; fail 'gdb failed'; }
# as many began as ended
[ "$(grep -c ^request_begin "$dir/traced")" = "$(grep -c ^request_end "$dir/traced")" ] || fail 'a request has no end'
expect 0 memctl check
echo 'probes.sh: they are as documented, and say what happens'
