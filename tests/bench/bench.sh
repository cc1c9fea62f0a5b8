#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# make bench: every program of tests/bench against a private broker. With BENCH_JSON=FILE also one JSON array.
set -eu

. "${srcdir:?}/tests/support/broker.sh"
begin_broker

printf '%-34s %21s   %21s   %6s\n' '' 'ours (us)' 'floor (us)' 'ratio'
printf '%-34s %10s %10s   %10s %10s   %6s  %s\n' 'what' 'median' 'p99' 'median' 'p99' 'median' 'the floor is'
: >"$dir/json"
for program in $BENCH_PROGRAMS; do
    "$builddir/$program"
    if [ -n "${BENCH_JSON-}" ]; then
        "$builddir/$program" --json >>"$dir/json"
    fi
done
if [ -n "${BENCH_JSON-}" ]; then
    jq -s . "$dir/json" >"$BENCH_JSON"
fi
