#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# memctl as people type it: what the README promises, exit statuses and wrong usage. What it prints is in
# memctl-output.sh.
set -u

. "${srcdir:?}/tests/support/broker.sh"
. "$srcdir/tests/support/expect.sh"
export PATH=$builddir/client/memctl:$PATH

# ---- no broker, wrong usage ----
expect 3 memctl status; said "^memctl: no broker answers at $MEMORYD_SOCKET: "
expect 2 memctl; said "usage: memctl"
expect 2 memctl frobnicate; said "no command"
expect 2 memctl status too-many; said "too many"
expect 2 memctl --bogus status; said "bogus"
expect 2 memctl status --bogus; said "no option --bogus"
expect 2 memctl status -x; said "no option -x"
expect 2 memctl alloc; said "--size"
expect 2 memctl alloc --size; said "requires a value"
expect 2 memctl alloc --size many; said "--size does not take"
expect 2 memctl why --uid no-such-user; said "there is no user .no-such-user'"
expect 2 memctl alloc --size 99999999999999999999; said "64 bits"
expect 2 memctl alloc --size 1.5
expect 2 memctl alloc --size 0x10
expect 2 memctl alloc --size 0x10K
expect 2 memctl alloc --size 1e3K
expect 2 memctl alloc --size 1M --pages wide; said "--pages"
expect 2 memctl alloc --size 1M --node 0,x; said "--node"
expect 2 memctl alloc --size 1M --weights 1; said "--weights"
expect 2 memctl alloc --size 1M --keep-for 5s; said "--name"
expect 2 memctl move a/b; said "--node"
expect 2 memctl move --node 0,1 a/b; said "--node"
expect 2 memctl cat; said "a buffer is required"
expect 2 memctl cat ''; said "no name, no id and no token"
expect 2 memctl share --keeping x; said "needs an end"
expect 2 memctl share --rights q x; said "--rights"
expect 2 memctl rm --force a/b; said "buffer's id"
expect 2 memctl open --claim some a/b; said "--claim"
expect 2 memctl open --claim shared id:1; said "a name"
commands=$(memctl help --json | jq -r '.[].command')
[ "$(wc -l <<<"$commands")" -gt 20 ] || fail "help --json lacks commands"
for command in $commands; do
    for help in "$command --help" "$command -h" "help $command"; do
        expect 0 memctl $help; shows "usage: memctl $command"
    done
    memctl --help | grep -q "^  $command " || fail "--help lacks $command"
done
for help in -h --help help; do expect 0 memctl $help; shows "^usage: memctl "; shows "^  status "; done
expect 2 memctl help frobnicate; said "no command"
expect 0 memctl -V; shows "^memctl [0-9]"
expect 0 memctl status -V; shows "^memctl [0-9]"
expect 0 memctl --version; shows "^memctl [0-9]"
expect 2 memctl doctor open; said "opencl"
expect 3 "$builddir/client/memctl/memctl" --json doctor
json '.[0].check == "broker" and (.[0].ok | not) and any(.[]; .check == "huge pages")'
expect 2 memctl doctor opencl me; said "not a process id"
expect 3 env -u OPENCL_LAYERS "$builddir/client/memctl/memctl" doctor opencl; shows "OPENCL_LAYERS .*is not set"
expect 3 env OPENCL_LAYERS=/nonexistent.so "$builddir/client/memctl/memctl" --json doctor opencl
json '.[0].check == "broker" and (.[0].ok | not) and .[1].check == "/nonexistent.so" and (.[1].ok | not)
      and .[2].check == "OPENCL_LAYERS"'
expect 1 memctl doctor opencl $$; shows "has no libmemclient-opencl"

# ---- a broker ----
begin_test_broker
expect 0 memctl status; shows "^keeper: *$broker\$"
expect 1 env -u OPENCL_LAYERS "$builddir/client/memctl/memctl" --json doctor opencl; json '.[0].check == "broker" and .[0].ok'
expect 0 memctl --json status; json '.[0].keeper_pid == '"$broker"' and .[0].broker_pid != .[0].keeper_pid and (.[0].socket | endswith("memoryd.sock"))'
# what it says is what there is
doctor() { expect "$1" env -u OPENCL_LAYERS bash -c "ulimit -n $2 && '$builddir/client/memctl/memctl' --json doctor"; }
doctor 1 1000; json 'any(.[]; .check == "programs\u0027 descriptors" and (.ok | not) and .ratio > 65 and
      (.mend | test("^prlimit --pid [0-9]+ --nofile=65536:65536 ")))'
enabled=$(grep -c '\[never\]\|\[deny\]' /sys/kernel/mm/transparent_hugepage/shmem_enabled)
json 'any(.[]; .check == "huge pages" and .ok == ('"$enabled"' == 0) and (.mend == null) == .ok and .ratio > 0)'
json 'any(.[]; .check == "versions" and .ok)'
json 'any(.[]; .check == "broker\u0027s descriptors" and .ok == ('"$(sed -n 's/^Max open files *\([0-9]*\).*/\1/p' "/proc/$broker/limits")"' >= 65536))'
json 'any(.[]; .check == "broker\u0027s descriptors" and (.ok or (.ratio > 1 and (.mend | startswith("prlimit --pid '"$broker"' ")))))'
# a ratio where both ways are here, and each row is in memctl(1)
json 'all(.[] | select(.check == "identity of processes" or (.check == "prefaulting" and .ok)); .ratio > 0)'
json 'any(.[]; .check == "/dev/udmabuf" and .ok == ('"$( (exec 3</dev/udmabuf) 2>/dev/null && echo true || echo false)"') and ((.ok | not) or .ratio > 0))'
json 'any(.[]; .check == "GPU" and (.detail | contains("adopt 0 buffers")))'
sed -n '/^# DOCTOR/,/^# COLUMNS/s/^\*\(.*\)\*$/\1/p' "$srcdir/client/memctl/memctl.1.scd" >"$dir/rows"
jq -r '.[].check' "$dir/out" | grep -vxFf "$dir/rows" && fail "memctl(1), DOCTOR, lacks these rows"
# each line is one that a shell takes, and so is what makes it stay
jq -r '.[].mend | select(.)' "$dir/out" | while read -r mend; do
    bash -n -c "$mend" && bash -n -c "${mend#*   # for good: }" || echo "$mend"
done >"$dir/no-lines"
[ ! -s "$dir/no-lines" ] || fail "no shell takes $(cat "$dir/no-lines")"
expect 1 bash -c "ulimit -n 1000 && '$builddir/client/memctl/memctl' doctor"; shows '^  prlimit --pid'
expect 0 memctl --json nodes; json 'length >= 1 and .[0].total > .[0].capacity and .[0].used == 0'
expect 0 memctl --json pools; json 'map(.name) | index("node0-4k") != null'
expect 0 memctl pools; shows "node0-4k"
# what doctor had is listed until its pages are free
for _ in $(seq 600); do memctl --json buffers | jq -e '. == []' >/dev/null && break; sleep 0.05; done
expect 0 memctl --json buffers; json '. == []'

# ---- as the README types it ----
head -c 5000000 /dev/urandom >"$dir/file"
expect 0 memctl alloc --size 8M --name a/b; shows '^[0-9]*$'
id=$(cat "$dir/out")
expect 0 memctl fill a/b <"$dir/file"
kill -9 "$(memctl status --json | jq '.[0].broker_pid')"
expect 0 memctl cat a/b
[ "$(stat -c %s "$dir/out")" = 8388608 ] || fail "cat wrote another number of bytes than the buffer has"
cmp -n 5000000 "$dir/file" "$dir/out" || fail "cat wrote other bytes"
[ "$(tail -c +5000001 "$dir/out" | tr -d '\0' | wc -c)" = 0 ] || fail "the rest is not zero"
expect 0 memctl cat "$id"; cmp -n 5000000 "$dir/file" "$dir/out" || fail "cat by id wrote other bytes"
expect 0 memctl buffers; shows "^ *$id .*a/b"
expect 0 memctl --json buffers
json '.[0] | .name == "a/b" and .size == 8388608 and .state == "live" and .names == 1 and .holds == 0
      and (.address | startswith("0x")) and .pool == "node0-4k" and (.flags | index("exported") != null)'
expect 0 memctl --json names; json '.[0] | .name == "a/b" and .policy == "keep" and .other_rights == null'
expect 0 memctl --json fill a/b </dev/null; json '.[0].bytes == 0'
head -c 9000000 /dev/zero >"$dir/long"
expect 1 memctl fill a/b <"$dir/long"; said "more bytes than the buffer"
expect 1 memctl alloc --size 1M --name a/b; said "a/b"
expect 1 memctl alloc --size 1M --name 'a//b'
expect 1 memctl alloc --size 0; said "0"
expect 1 memctl alloc --size 1M --pool nowhere; said "nowhere"
expect 1 memctl alloc --size 15E
expect 1 memctl alloc --size 1M --node 63

# ---- tokens ----
expect 0 memctl share --rights r a/b; shows '^[0-9a-f]{64}$'
reader=$(cat "$dir/out")
expect 0 memctl --json tokens; json '.[0] | .rights == "r" and .keeping == false and .for_uid == null'
expect 0 memctl cat "$reader"
expect 1 memctl fill "$reader" </dev/null; said "right"
expect 0 memctl open "$reader" sh -c '[ "$MEMORYD_SIZE" = 8388608 ] && head -c 3 <&"$MEMORYD_FD" | wc -c'; shows '^3$'
expect 0 memctl --json open a/b; json '.[0].holders[0] | .rights == "rwsm" and .claim == null'
expect 0 memctl --json open --claim exclusive a/b; json '.[0].holders[0].claim == "exclusive"'
expect 1 memctl open --claim shared a/b memctl open --claim exclusive a/b; said "has a shared claim"
expect 0 memctl open --claim shared a/b memctl open --claim shared a/b
expect 0 memctl open --claim exclusive a/b memctl open a/b
expect 0 memctl rm "$reader"
expect 1 memctl cat "$reader"; said "revoked"
expect 1 memctl cat "$(printf '%064d' 7)"
expect 0 memctl alloc --size 010 --name ten
expect 0 memctl --json open ten; json '.[0].size == 10'
expect 0 memctl rm ten
expect 0 memctl alloc --size 4K
token=$(cat "$dir/out")
expect 0 memctl cat "$token"
expect 1 memctl cat "$token"
expect 0 memctl --json share --keeping --uses 2 --expires 1h --uid "$(id -u)" a/b; json '.[0].token | length == 64'
expect 0 memctl --json tokens; json '.[0] | .keeping and .uses_left == 2 and .for_uid == '"$(id -u)"' and .expires_ms > 3000000'

# ---- publish ----
expect 0 memctl alloc --size 64K --name p --publishable
expect 1 memctl publish a/b; said "--publishable"
head -c 65536 "$dir/file" >"$dir/head"
expect 0 memctl fill p <"$dir/head"
expect 0 memctl --json publish p; json '.[0].flags | index("published") != null'
expect 1 memctl fill p </dev/null; said "publish"
expect 0 memctl cat p; cmp "$dir/out" "$dir/head" || fail "publishing changed bytes"

# ---- move: to the node where it is, and to one that is not; test-move has more ----
expect 0 memctl --json move --node 0 p; json '.[0] | .placement == "bind" and .places[0].node == 0'
expect 1 memctl move --node 63 p; said "node 63"
expect 0 memctl cat p; cmp "$dir/out" "$dir/head" || fail "moving changed bytes"

# ---- leaks: a program that outlives the session of the one that made the buffer, with a descriptor ----
expect 0 memctl leaks; shows "no leaks"
expect 0 memctl --json leaks; json '. == []'
expect 0 memctl alloc --size 3M --name leaky
leaky=$(cat "$dir/out")
expect 0 memctl open leaky sh -c 'sleep 100 <&"$MEMORYD_FD" & echo $!'
holder=$(cat "$dir/out")
expect 0 memctl leaks; shows "no leaks"
expect 0 memctl rm leaky
for _ in $(seq 600); do memctl leaks | grep -q "$leaky" && break; sleep 0.05; done
expect 0 memctl leaks; shows "^ *$leaky .*3M .*node0-4k .* $(id -un) "; shows "^1 buffer, 3M, "
expect 0 memctl --json leaks
# a user need not have a name
user=$(getent passwd "$(id -u)" | jq --raw-input --raw-output 'split(":")[0] | tojson')
json 'length == 1 and (.[0] | .bytes == 3145728 and .charged_uid == '"$(id -u)"' and .user == '"${user:-null}"'
      and .program == null and .pid > 0 and .inode > 0 and .detached_ms >= .created_ms
      and .open_in == ['"$holder"'])'
kill "$holder"
for _ in $(seq 600); do memctl leaks | grep -q "no leaks" && break; sleep 0.05; done
expect 0 memctl leaks; shows "no leaks"

# ---- the end ----
expect 0 memctl check; shows "FAULTS"
expect 0 memctl --json check; json '.[0].faults == 0 and .[0].buffers >= 2'
expect 0 memctl rm p
expect 0 memctl rm "$id"
expect 1 memctl rm a/b; said "a/b"
expect 1 memctl cat "$id"
expect 1 memctl rm 999999
for _ in $(seq 600); do memctl --json pools | jq -e 'all(.used == 0)' >/dev/null && break; sleep 0.05; done
expect 0 memctl --json pools; json 'all(.used == 0 and .buffers == 0)'
expect 0 memctl sessions; shows "memctl"
expect 0 memctl reservations

echo "memctl.sh: everything as promised"
