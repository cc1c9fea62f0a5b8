#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# I1 in a container: of memory that only the machine has left, and not the control group that memoryd is in, it gives
# nothing out and makes no stock. Otherwise the kernel would kill somebody for it.
set -u

. "${srcdir:?}/tests/support/broker.sh"
memctl=$builddir/client/memctl/memctl
limit=$((512 << 20))
group=

skip() {
    echo "$*"
    exit 77
}

fail() {
    echo "FAILED: $*; $(cat "$dir/log")"
    exit 1
}

# Below this test's own group or, where that cannot be seen, below the first one.
make_group() {
    local version controller file path
    for version in '/sys/fs/cgroup/memory memory memory.limit_in_bytes' '/sys/fs/cgroup - memory.max'; do
        read -r version controller file <<<"$version"
        path=$(awk -F: -v name="${controller#-}" '$2 == name { print $3 }' /proc/self/cgroup)
        [ -d "$version$path" ] || path=
        group=$version$path/memoryd-test.$$
        mkdir "$group" 2>/dev/null || continue
        echo $limit 2>/dev/null >"$group/$file" && return
        rmdir "$group"
    done
    group=
    return 1
}

end() {
    [ -z "$broker" ] || { kill "$broker" && wait "$broker"; } 2>/dev/null
    broker=
    for _ in $(seq 600); do
        [ -z "$group" ] || rmdir "$group" 2>/dev/null && break
        sleep 0.05
    done
    rm -rf "$dir"
}
trap end EXIT

make_group || skip "no control group with a limit of memory can be made here"
[ "$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)" -gt $((4 << 20)) ] || skip "less than 4 GiB are available"

cat >"$dir/memoryd" <<'SCRIPT'
#!/bin/bash
echo $$ >"$0.group/cgroup.procs" && exec "$(cat "$0.program")" "$@"
SCRIPT
chmod +x "$dir/memoryd"
ln -s "$group" "$dir/memoryd.group"
echo "${builddir:?}/daemon/memoryd" >"$dir/memoryd.program"
printf '[pools]\npages = base\ncapacity = 2G\nstock = 100%%\n' >"$dir/config"
begin_broker "$dir/memoryd" --config "$dir/config"
who() { "$memctl" --json status | sed -n 's/.*"broker_pid": \([0-9]*\).*/\1/p'; }
served=$(who)

# what fits comes, again and again, whatever is made ahead meanwhile
for i in 1 2 3 4 5 6; do
    "$memctl" alloc --size 48M --name here >/dev/null || fail "48 MiB were refused in round $i"
    "$memctl" rm here >/dev/null || fail "they cannot be removed"
done
# what does not is refused, and nobody dies over it
if said=$("$memctl" alloc --size 1G --name large 2>&1); then
    fail "a group of 512 MiB got 1 GiB"
fi
[[ $said == *'control group'* ]] || fail "the refusal does not say why: $said"
"$memctl" alloc --size 48M --name here >/dev/null || fail "48 MiB were refused afterwards"
[ "$(who)" = "$served" ] || fail "the broker has died"
"$memctl" check >/dev/null || fail "the sums are wrong"
