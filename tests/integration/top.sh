#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# memctl top without a terminal: once, as JSON, and a recorded listing, also a long and a hostile one. top-screen.sh has
# the terminal.
set -u

. "${srcdir:?}/tests/support/broker.sh"
. "$srcdir/tests/support/expect.sh"
PATH=$builddir/client/memctl:$PATH

# ---- the command line, and nobody there ----
expect 3 memctl top --once; said 'no broker|memoryd'
expect 3 memctl --json top
expect 2 memctl top --view nothing; said "view does not take .nothing'"
expect 2 memctl top --view users --sort oldest; said 'users are not sorted by oldest'
expect 2 memctl top --view buffers --sort rate; said 'buffers are not sorted by rate'
expect 0 true
for filter in uid:no-such-user pid:0 pid:x session: session:0 session:-1 pool: nothing uid:; do
    expect 2 memctl top --once --filter "$filter"; said 'filter does not take'
done
expect 2 memctl top --interval 5ms; said '100ms at least'
expect 1 memctl top </dev/null; said '--once'

# ---- what there is ----
begin_test_broker
for n in 1 2 3 4 5; do expect 0 memctl alloc --size "${n}M" --name "top/$n"; done
expect 0 memctl top --once
shows '^memoryd .* 15M of .* used +5 buffers'
shows '^chosen: 5 buffers, 15M'; shows '^buffers by bytes *$'
shows '^node0-4k +\[#[#=.]*\] 15M used'
[ "$(grep -oE 'top/[0-9]' "$dir/out" | tr '\n' ' ')" = 'top/5 top/4 top/3 top/2 top/1 ' ] || fail "another order"
expect 0 memctl top --once --sort oldest --rows 2
[ "$(grep -oE 'top/[0-9]' "$dir/out" | tr '\n' ' ')" = 'top/1 top/2 ' ] || fail "another order"
shows '^buffers by oldest: 1 to 2 of 5 *$'
expect 0 memctl top --once --filter pool:node0-4k; shows 'only pool:node0-4k'
expect 1 memctl top --once --filter pool:nowhere; said 'no pool'
expect 0 memctl top --once --filter pid:1; shows '^chosen: 0 buffers'
expect 0 memctl top --once --view processes; shows ' memctl *$'
expect 0 memctl top --once --view users; shows "^ *$(id -u) +15M"
expect 0 memctl --json top --interval 100ms
json '.[0].processes | any(.program == "memctl" and .rate == 0 and .request_rate > 0)'
expect 0 memctl top --once --interval 100ms --view processes --sort requests
shows '^processes by requests'; shows ' [+]?0/s +[1-9][0-9]* +0 +[0-9]+s memctl *$'
[ "$(wc -c <"$dir/err")" = 0 ] || fail "it says something"
expect 0 memctl --json top
json '.[0] | .sums == {buffers: 5, bytes: 15728640, huge_bytes: 0, detached: 0, detached_bytes: 0, holds: 0}
      and (.buffers | map(.name)) == ["top/5", "top/4", "top/3", "top/2", "top/1"] and .broker.used == 15728640
      and .users[0].bytes == 15728640 and (.processes | any(.program == "memctl" and .rate == null and .request_rate == null
      and .requests > 0 and .waiting == 0))'

# ---- recorded, and another order and choice of it ----
cp "$dir/out" "$dir/record"
memctl --json buffers >"$dir/listing"
# who has lost the connection makes no requests: how many each second is not known, which is not 0
memctl open top/5 sleep 1000 >"$dir/out" 2>&1 &
holder=$!
trap 'kill "$holder"; wait "$holder"; kill "$broker" && wait "$broker"; rm -rf "$dir"' EXIT
for _ in $(seq 1200); do
    memctl --json sessions | jq -e "any(.[]; .pid == $holder and (.connected | not))" >/dev/null && break
    sleep 0.05
done
expect 0 memctl --json top --interval 100ms
json '.[0].processes | map(select(.pid == '"$holder"')) | length == 1 and .[0].rate == 0 and .[0].request_rate == null'
kill "$holder"; wait "$holder" 2>/dev/null
trap '[ -z "$broker" ] || { kill "$broker" && wait "$broker"; } 2>/dev/null || :; rm -rf "$dir"' EXIT
kill "$broker" && wait "$broker"
broker=
# a listing does not say when it was taken, and an older one lacks what there was not yet
expect 0 memctl top --once --replay "$dir/record"; shows ' [0-9]+s live .*top/5'
expect 0 memctl top --once --replay "$dir/listing"; shows ' - live .*top/5'
shows '^chosen: 5 buffers, 15M, of that 0 in huge pages .*; 0 holds'
jq 'map(del(.holds, .huge_bytes))' "$dir/listing" >"$dir/old"
expect 0 memctl top --once --replay "$dir/old"; shows '^chosen: 5 buffers, 15M, of that - in huge pages .*; - holds'
expect 0 memctl --json top --replay "$dir/old"; json '.[0].sums | .holds == null and .huge_bytes == null and .buffers == 5'
for record in record listing; do
    expect 0 memctl top --once --replay "$dir/$record" --sort newest --rows 3
    shows '^chosen: 5 buffers, 15M'
    [ "$(grep -oE 'top/[0-9]' "$dir/out" | tr '\n' ' ')" = 'top/5 top/4 top/3 ' ] || fail "another order"
    expect 0 memctl --json top --replay "$dir/$record" --filter uid:12345678
    json '.[0].sums.buffers == 0 and .[0].buffers == []'
done
expect 1 memctl top --once --replay "$dir/none"; said 'none: '
echo '{' >"$dir/broken"; expect 1 memctl top --once --replay "$dir/broken"; said 'line [0-9]'
echo '[{"a": 1}]' >"$dir/broken"; expect 1 memctl top --once --replay "$dir/broken"; said 'is neither'
echo '[{"buffers": [7, null, {"bytes": "x", "holders": 3}], "pools": 9, "processes": {}, "users": [[]]}]' >"$dir/odd"
for view in buffers processes users; do expect 0 memctl top --once --view "$view" --replay "$dir/odd"; done

# ---- texts of others do not get to the terminal as they are ----
printf '[{"id": 1, "bytes": 4096, "name": "a\\u001b[31mb\\u202e\\nc", "pool": "p\\u009b"}]' >"$dir/hostile"
expect 0 memctl top --once --replay "$dir/hostile"
shows 'a\\x1b\[31mb\\u202e\\x0ac'
! LC_ALL=C grep -q "$(printf '\033')" "$dir/out" || fail "an escape sequence"

# ---- a hundred thousand ----
awk 'BEGIN { printf "["; for (i = 1; i <= 100000; i++)
    printf "%s{\"id\":%d,\"bytes\":4096,\"charged_uid\":%d,\"holds\":1,\"name\":\"n%d\"}", (i > 1 ? "," : ""), i, i % 7, i
    print "]" }' >"$dir/many"
expect 0 memctl top --once --replay "$dir/many"; shows '^chosen: 100000 buffers, 390.6M'
[ "$(wc -l <"$dir/out")" -le 40 ] || fail "it is long"
expect 0 memctl top --once --replay "$dir/many" --filter uid:0 --rows 5; shows '^chosen: 14285 buffers'
