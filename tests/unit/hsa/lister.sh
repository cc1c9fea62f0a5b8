#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A program that lists HSA's agents, as the tools of other runtimes do, sees the nodes and pools that the broker has:
# two simulated nodes, and the machine as it is.
set -euo pipefail
command -v jq >/dev/null || { echo "jq is not installed"; exit 77; }
# shellcheck source=tests/support/broker.sh
source "$srcdir/tests/support/broker.sh"

fail() {
    echo "FAIL: $*"
    exit 1
}

memctl() {
    "$builddir/client/memctl/memctl" "$@"
}

# compare WHAT MEMCTL-LINES LISTER-LINES: they must be the same
compare() {
    diff "$2" "$3" || fail "the lister and memctl do not agree on $1"
}

# What both say of each node: its number; its ordinary memory, three times; its distance to others' memory.
look() {
    "$builddir/tests/unit/hsa/lister" >"$dir/listed" || fail "the lister ended with $?"
    memctl --json nodes >"$dir/nodes"
    memctl --json pools >"$dir/pools"

    jq -r '.[] | select(.total > 0 or .has_cpus) | "node \(.node)"' "$dir/nodes" >"$dir/wanted"
    sed -n 's/^\(node [0-9]*\) .*/\1/p' "$dir/listed" >"$dir/got"
    compare nodes "$dir/wanted" "$dir/got"

    jq -r '.[] | select(.capacity > 0) | .capacity as $c | ("2", "3", "4") | "flags \(.) size \($c)"' \
        "$dir/nodes" >"$dir/wanted"
    sed -n 's/^  pool segment 0 \(flags [0-9]* size [0-9]*\) allocatable 1 .*/\1/p' "$dir/listed" >"$dir/got"
    compare capacities "$dir/wanted" "$dir/got"

    # the pools with transparent huge pages, if there are any, are the same memory as those of base pages
    jq -r '.[] | select(.pages == "base" and .placement == "bind" and (.nodes | length) == 1) | "free \(.available)"' \
        "$dir/pools" >"$dir/wanted"
    sed -n 's/^  \(free [0-9]*\)/\1/p' "$dir/listed" >"$dir/got"
    compare "what is available" "$dir/wanted" "$dir/got"

    jq -r '. as $all | range(length) as $to | select($all[$to].capacity > 0) | range(3) | range($all | length) as $from
           | select($from != $to) | "distance \($all[$from].distances[$all[$to].node])"' "$dir/nodes" >"$dir/wanted"
    sed -n 's/^    agent .* \(distance [0-9]*\) coherent 1$/\1/p' "$dir/listed" >"$dir/got"
    compare distances "$dir/wanted" "$dir/got"
}

MEMORYD_HSA_PROFILE=nonsense "$builddir/tests/unit/hsa/lister" 2>"$dir/error" && fail "there is no such profile"
grep -q 'INVALID_ARGUMENT' "$dir/error" || fail "a profile that does not exist: $(cat "$dir/error")"
"$builddir/tests/unit/hsa/lister" 2>"$dir/error" && fail "there is no broker"
grep -q 'OUT_OF_RESOURCES' "$dir/error" || fail "without a broker: $(cat "$dir/error")"

printf '#!/bin/sh\nexec %q "$@" --config %q\n' "$builddir/daemon/memoryd" "$dir/config" >"$dir/memoryd"
chmod +x "$dir/memoryd"
for nodes in 2 0; do
    printf '%s\n[topology]\nsimulate_nodes = %d\n' "$ordinary_pages" "$nodes" >"$dir/config"
    begin_broker "$dir/memoryd"
    look
    [ "$nodes" = 0 ] || grep -q '^node 1 ' "$dir/listed" || fail "no node 1"
    kill "$broker"
    wait "$broker" || fail "memoryd ended with $?"
    broker=
done
