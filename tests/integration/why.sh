#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# memctl why, events, holders and limits, as somebody asks them after something went wrong: a pool was full, a request
# waited, a worker was killed, another one exited, the broker died meanwhile. What other users see is in
# hostile/test-history.c.
set -u

. "${srcdir:?}/tests/support/broker.sh"
. "$srcdir/tests/support/expect.sh"
PATH=$builddir/client/memctl:$PATH

# until the history has it
eventually() {
    for _ in $(seq 1200); do
        memctl --json events >"$dir/out" 2>"$dir/err" && jq -e "$1" "$dir/out" >/dev/null && return
        sleep 0.05
    done
    fail "never so: $1"
}
uid=$(id -u)

printf '[pools]\npages = base\ncapacity = 16M\n' >"$dir/config"
begin_broker "$builddir/daemon/memoryd" --config "$dir/config"
expect 0 memctl why; shows '^nothing was refused .* that you may see$'
expect 0 memctl --json why; json '. == []'

# ---- a pool is full: the numbers of that moment, and who had most ----
expect 0 memctl alloc --size 12M --name big
big=$(cat "$dir/out")
expect 1 memctl alloc --size 8M
expect 0 memctl --json why
json 'length == 1 and (.[0] | .kind == "refused" and .method == "alloc" and .status == "POOL_FULL" and .uid == '"$uid"'
      and .pool == "node0-4k" and .resource == "bytes" and .wanted == 8388608 and .used == 12582912
      and .limit == 16777216 and .mine == 12582912 and .most_uid == '"$uid"' and .most == 12582912 and .count == 1
      and .program == "memctl" and .end == null and .signal == null)'
expect 0 memctl why; shows 'refused .*alloc: 8M do not fit into pool node0-4k now \(4M available\).*of 16M, user '"$uid"' had 12M'

# ---- a request that waited ----
memctl alloc --size 8M --wait 100s --name late >"$dir/late" 2>&1 &
late=$!
for _ in $(seq 1200); do memctl --json sessions | jq -e "any(.[]; .pid == $late)" >/dev/null && break; sleep 0.05; done
expect 0 memctl rm "$big"
wait "$late" || fail "it was not served: $(cat "$dir/late")"
expect 0 memctl --json events --kind waited
json 'length == 1 and (.[0] | .pool == "node0-4k" and .wanted == 8388608 and .used == 12582912 and .waited_ms > 0
      and .mine == 12582912 and .most == 12582912)'
expect 1 memctl alloc --size 12M --wait 50ms
expect 0 memctl --json why
json 'last | .status == "TIMED_OUT" and .waited_ms >= 50 and .pool == "node0-4k" and .used == 8388608'
# what goes meanwhile, without being enough, is gone from all of the numbers
expect 0 memctl alloc --size 4M --name short
short=$(cat "$dir/out")
memctl alloc --size 16M --wait 3s >"$dir/late" 2>&1 &
late=$!
for _ in $(seq 1200); do memctl --json sessions | jq -e "any(.[]; .pid == $late and .waiting == 1)" >/dev/null && break; sleep 0.05; done
expect 0 memctl rm "$short"
! wait "$late" || fail "there was room"
expect 0 memctl --json why --pid "$late"; json 'length == 1 and (.[0] | .status == "TIMED_OUT" and .used == .mine and .used == .most)'
expect 0 memctl why --pid "$late"; shows 'had no room for 16M within 3000 ms.*\(of 16M, user '"$uid"' had [0-9]+M when it gave up\)$'
expect 0 memctl why; shows 'got 8M of pool node0-4k after .*\(of 16M, user '"$uid"' had 12M when it began to wait\)$'

# ---- workers that die: what they had and, from Linux 6.15 on, how ----
memctl open late sh -c 'kill -SEGV $$' >"$dir/out" 2>&1
expect 7 memctl open late sh -c 'exit 7'
eventually 'map(select(.kind == "ended" and .end != "goodbye" and .end != "died")) | length == 2 and .[0].holds == 1'
if ! jq -e 'any(.[]; .end == "unknown")' "$dir/out" >/dev/null; then
    json 'map(select(.signal == 11)) | length == 1 and .[0].holds == 1 and .[0].end == "signal"'
    json 'map(select(.exit_status == 7)) | length == 1 and .[0].end == "exited"'
    expect 0 memctl why; shows 'killed by signal 11, SIGSEGV; it held 1 buffer'; shows 'exited with status 7'
elif printf '%s\n' 6.15 "$(uname -r)" | sort -CV; then
    fail "it is not known how they ended"
fi
expect 0 memctl --json why --since 1ms
expect 0 memctl --json why --pid 1; json '. == []'
expect 0 memctl --json why --uid "$((uid + 1))"; json '. == []'
expect 2 memctl events --kind odd; said 'there are: refused, waited, ended, started, done, held, .*discarded, .*shutdown'
expect 1 memctl rm id:999999; said 'there never was a buffer 999999'
expect 1 memctl rm "id:$(memctl --json sessions | jq '.[0].id')"; said 'buffer [0-9]+ has ended, or the id was another thing'

# ---- who holds it ----
memctl open late sh -c 'echo >"$0"; read -r _ <"$1"' "$dir/opened" "$(mkfifo "$dir/go"; echo "$dir/go")" >/dev/null 2>&1 &
holder=$!
for _ in $(seq 1200); do [ -s "$dir/opened" ] && break; sleep 0.05; done
expect 0 memctl --json holders late
json 'map(select(.by == "session")) | length == 1 and .[0].pid == '"$holder"' and .[0].uid == '"$uid"' and .[0].rights != null'
json 'map(select(.by == "name")) | length == 1 and .[0].name == "late" and .[0].session == null'
json 'map(select(.by == "session"))[0] | .created_ms <= .session_since_ms and .session_since_ms <= .since_ms'
expect 0 memctl --json holders "pid:$holder"; json 'length == 1 and .[0].by == "session"'
expect 0 memctl --json holders "uid:$uid"; json 'length == 2'
expect 0 memctl --json holders pid:1; json '. == []'
expect 1 memctl holders nobodys
expect 1 memctl holders 999; said 'none of the buffers that you may see'
expect 0 memctl holders pid:1; shows 'nothing that you may see is held by it'
expect 2 memctl holders; expect 2 memctl holders pid:x

# ---- who only has it open: the user who pays, and the process ----
expect 0 memctl alloc --size 4K --name loose
loose=$(cat "$dir/out")
memctl open loose sleep 1000 >/dev/null 2>&1 &
opener=$!
for _ in $(seq 1200); do [ "$(cat "/proc/$opener/comm")" = sleep ] && break; sleep 0.05; done
expect 0 memctl rm "id:$loose"
expect 0 memctl --json holders "$loose"
json 'length == 1 and (.[0] | .by == "open" and .uid == '"$uid"' and .open_in == ['"$opener"'] and .session == null)'
kill "$opener"; wait "$opener" 2>/dev/null

# ---- what applies ----
expect 0 memctl --json limits
json 'map(select(.resource == "bytes" and .pool == null)) | length == 1 and .[0].used == 8388608 and .[0].uid == '"$uid"
json 'map(select(.pool == "node0-4k")) | .[0].limit == 16777216 and .[0].used == 8388608 and .[0].available == 8388608'
json 'map(select(.resource == "tokens"))[0] | .key == "uid_tokens in [limits]" and .unit == "1"'

# also to who has nothing
expect 0 memctl limits --uid 4242; shows '^ *4242  bytes +node0-4k +0 +16M +[48]M '; shows '^ *4242  tokens +- +0 '
expect 0 memctl --json limits --uid 4242
json 'length > 5 and all(.[]; .uid == 4242 and .used == 0 and .share > 0 and .allow == null)'
json 'map(select(.pool == "node0-4k")) | .[0] | .limit == 16777216 and .available > 0 and .available <= 8388608'
expect 2 memctl limits --uid no-such-user; said 'there is no user .no-such-user'

# ---- what was done ----
expect 0 memctl --json events --kind done
json 'map(.method) | index("name_unbind") == null and index("destroy") != null'
json 'map(select(.method == "destroy"))[0].buffer == '"$big"
expect 0 memctl alloc --size 4K --name gone; expect 0 memctl rm gone
expect 0 memctl events --kind done; gone=$(memctl --json events --kind done | jq 'map(select(.name == "gone"))[0].buffer')
expect 0 memctl events --kind done; shows "done .*memctl +bound the name gone to buffer $gone, which is new$"
shows "done .*memctl +unbound the name gone from buffer $gone$"; shows "done .*memctl +destroyed buffer $big$"
expect 0 memctl --json events --kind done
json 'map(select(.buffer == '"$gone"') | [.method, .name, .sentence]) == [["alloc", "gone", null], ["name_unbind", "gone", null]]'
# it had given the buffer back, and its token kept that
expect 0 memctl alloc --size 4K; token=$(cat "$dir/out")
expect 0 memctl events --kind ended
shows 'closed; it held no buffer any more, and was charged for 4K that names, tokens or other sessions keep'
expect 0 memctl rm "$token"; expect 0 memctl --json events --kind done
json 'map(select(.method == "revoke")) | length == 1 and .[0].buffer > '"$gone"
# what the protocol calls lookup is opening to users
expect 125 memctl open --claim exclusive late memctl open --claim exclusive late true
expect 0 memctl why; shows 'refused .*memctl +open: session [0-9]+ of pid [0-9]+ \(memctl\) has an exclusive claim'

# ---- it goes on when the broker dies, and who follows is told ----
memctl --json events --follow >"$dir/followed" 2>&1 &
follower=$!
trap 'kill "$follower"; kill "$broker" && wait "$broker"; rm -rf "$dir"' EXIT
for _ in $(seq 1200); do [ -s "$dir/followed" ] && break; sleep 0.05; done
memctl --json events | jq 'map(select(.kind != "ended" or .end != "goodbye") | del(.serial))' >"$dir/before"
kill -9 "$(memctl --json status | jq '.[0].broker_pid')"
echo >"$dir/go"
wait "$holder"
eventually 'map(select(.kind == "started")) | length == 1 and .[0].end == "died"'
expect 0 memctl why; shows 'started .*this broker took over from one that had died; the log of memoryd says how$'
memctl --json events | jq 'map(select((.kind != "ended" or .end != "goodbye") and .kind != "started") | del(.serial))' >"$dir/after"
jq -e --slurpfile before "$dir/before" '. as $after | $before[0] - $after == []' "$dir/after" >/dev/null || fail "not as before"
for _ in $(seq 1200); do grep -q '"kind":"started"' "$dir/followed" && break; sleep 0.05; done
grep '"kind":"started"' "$dir/followed" | jq -e .serial >/dev/null || fail "the follower was not told"
jq -e . <"$dir/followed" >/dev/null || fail "a line is no object"
expect 0 memctl upgrade
expect 0 memctl events --kind started; shows 'had ended in order, to be restarted or upgraded$'
expect 0 memctl --json why; json 'map(select(.kind == "started") | .end) == ["died"]'
[ "$(jq -s 'map(.serial) | . == sort' "$dir/followed")" = true ] || fail "not in order"
echo "why.sh: everything was explained"
