# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Within tests/integration/systemd-system.sh, on a machine of its own with four nodes: what a container has not. The
# scripts there define fail.

sys=/sys/devices/system/node
HUGE=4 # pages of 2 MiB on each node

prepare_machine() {
    local node
    for node in 0 1 2 3; do
        echo $HUGE >$sys/node$node/hugepages/hugepages-2048kB/nr_hugepages
        [ "$(cat $sys/node$node/hugepages/hugepages-2048kB/nr_hugepages)" = $HUGE ] || fail "no huge pages on node $node"
    done
    echo advise >/sys/kernel/mm/transparent_hugepage/shmem_enabled
}

# in_kernel KIND NODE: how many KiB of that kind the kernel has in use there
in_kernel() {
    case $1 in
        base) sed -n 's/^Node .* Shmem: *\([0-9]*\) kB/\1/p' "$sys/node$2/meminfo" ;;
        thp) sed -n 's/^Node .* ShmemHugePages: *\([0-9]*\) kB/\1/p' "$sys/node$2/meminfo" ;;
        hugetlb) echo $((2048 * (HUGE - $(cat "$sys/node$2/hugepages/hugepages-2048kB/free_hugepages")))) ;;
    esac
}

look_at_machine() {
    local node kind size before

    [ "$(memctl nodes --json | jq -c '[.[].node]')" = '[0,1,2,3]' ] || fail "the nodes are $(memctl nodes)"
    [ "$(memctl nodes --json | jq -c '[.[].distances]')" = "$(cat $sys/node[0-3]/distance | jq -sRc 'split("\n")[:-1] | map(split(" ") | map(tonumber))')" ] ||
        fail "the distances are $(memctl nodes)"
    for kind in base thp hugetlb; do
        # of huge pages a user may have half of what there is
        size=8
        [ $kind != hugetlb ] || size=$HUGE
        for node in 0 1 2 3; do
            before=$(in_kernel $kind $node)
            as_stranger memctl alloc --pages $kind --node $node --size ${size}M --name machine/$kind$node >/dev/null ||
                { fail "no $kind pages on node $node"; continue; }
            # its stock may have had them already
            echo "$kind pages on node $node: the kernel had $before KiB, and has $(in_kernel $kind $node)"
            [ "$(in_kernel $kind $node)" -ge $((size * 1024)) ] ||
                fail "node $node has $(in_kernel $kind $node) KiB of $kind pages"
        done
    done
    for kind in base thp hugetlb; do
        for node in 0 1 2 3; do as_stranger memctl rm machine/$kind$node || fail "memctl rm"; done
    done
    limit_machine
    examine_machine
    memctl check || fail "memctl check"
}

# Below MemoryMax= of the unit, the broker refuses before the kernel kills.
limit_machine() {
    local keeper n=0 current
    keeper=$(pid_of keeper)
    current=$(value memoryd.service MemoryCurrent)
    systemctl set-property --runtime memoryd.service MemoryMax=$((current + (192 << 20))) || fail "no MemoryMax="
    while [ $n -lt 100 ] && as_stranger memctl alloc --pages base --size 16M --name machine/$n >/dev/null 2>/tmp/why; do
        n=$((n + 1))
    done
    echo "MemoryMax=: $n times 16 MiB, then: $(cat /tmp/why)"
    [ $n -ge 4 ] && [ $n -lt 13 ] || fail "below MemoryMax= there is room for $n times 16 MiB"
    while [ $n -gt 0 ]; do
        n=$((n - 1))
        as_stranger memctl rm machine/$n || fail "memctl rm"
    done
    systemctl set-property --runtime memoryd.service MemoryMax=infinity
    [ "$(pid_of keeper)" = "$keeper" ] || fail "the kernel has killed the keeper"
    [ "$(memctl status --json | jq '.[0].restarts')" = 0 ] || fail "the kernel has killed the broker"
}

# row CHECK FILTER [SOCKET]: what memctl doctor finds is so
row() {
    memctl --socket "${3-/run/memoryd/memoryd.sock}" --json doctor | jq --arg check "$1" '.[] | select(.check == $check)' >/tmp/row
    jq -e "$2" /tmp/row >/dev/null || fail "memctl doctor: not $2: $(cat /tmp/row)"
}

# memctl doctor, where there is all that it looks for, and what its lines bring
examine_machine() {
    local private=/tmp/private/m.sock

    row nodes '.ratio > 0 and (.detail | startswith("4 NUMA nodes; memory of node "))'
    row /dev/udmabuf '.ok and .ratio > 0 and (.detail | endswith("and the broker adopts one"))'
    row "broker's memory" .ok
    systemctl set-property --runtime memoryd.service MemoryMax=300M || fail "no MemoryMax="
    row "broker's memory" '(.ok | not) and .ratio > 1'
    bash -c "$(jq -r .mend /tmp/row)" || fail "not done: $(jq -r .mend /tmp/row)"
    row "broker's memory" .ok
    systemctl set-property memoryd.service MemoryMax=infinity

    # one that is no service
    mkdir -m 700 "${private%/*}"
    (ulimit -n 5000 && exec memoryd --socket $private >/tmp/private/log 2>&1) &
    for _ in $(seq 600); do [ ! -S $private ] || break; sleep 0.05; done
    row "broker's descriptors" '(.ok | not) and .ratio > 100' $private
    bash -c "$(jq -r .mend /tmp/row)" || fail "not done: $(jq -r .mend /tmp/row)"
    row "broker's descriptors" .ok $private
    kill $! && wait $! || fail "the private broker ends with $?"
}
