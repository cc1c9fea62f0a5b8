#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the programs of make bench tell: nothing before the last visit, then the rounds of all of them with every field
# that README.md names, and reasons for what is skipped. BENCH_UMF is tried with our own library as if it were
# upstream's. No figure is looked at.
set -eu

# shellcheck source=tests/support/broker.sh
. "${srcdir:?}/tests/support/broker.sh"

fail() {
    echo "$*" >&2
    exit 1
}

# field NAME FILE: its value in the only object there
field() {
    sed -n "s/.*\"$1\": \\(\"[^\"]*\"\\|[^,}]*\\).*/\\1/p" "$2"
}

bench=${builddir:?}/tests/bench
export BENCH_SECONDS=0.1
unset BENCH_UMF
mkdir "$dir/kept" "$dir/upstream"
begin_test_broker

# ---- visits
"$bench/roundtrip" --json "$dir/rows" --visit 1 2 "$dir/kept" rpc_null >"$dir/out"
[ ! -s "$dir/out" ] && [ ! -s "$dir/rows" ] || fail "a visit that is not the last one tells something"
[ -s "$dir/kept/rpc_null" ] || fail "a visit keeps nothing"
"$bench/roundtrip" --json "$dir/alone" rpc_null >"$dir/out"
"$bench/roundtrip" --json "$dir/rows" --visit 2 2 "$dir/kept" rpc_null >"$dir/out"
[ "$(wc -l <"$dir/out")" = 1 ] && grep -q '^rpc_null ' "$dir/out" || fail "the last visit tells: $(cat "$dir/out")"
[ "$(wc -l <"$dir/rows")" = 1 ] || fail "the last visit adds: $(cat "$dir/rows")"
# each more has the rounds of all before and 3 of its own at least; chance alone would not go up five times
for _ in 1 2 3 4 5; do
    rounds=$(field rounds "$dir/rows")
    rm "$dir/rows"
    "$bench/roundtrip" --json "$dir/rows" --visit 2 2 "$dir/kept" rpc_null >"$dir/out"
    [ "$(field rounds "$dir/rows")" -ge $((rounds + 3)) ] || fail "a visit adds no rounds to the $rounds of those before"
done

# ---- fields
awk -F'|' '/^\| field/, !NF { print $2 }' "$srcdir/tests/bench/README.md" | tr -cs 'a-z0-9_' '\n' | grep -v '^field$' |
    grep . | sort >"$dir/documented"
grep -o '"[a-z0-9_]*": ' "$dir/alone" | tr -d '": ' | sort >"$dir/fields"
diff "$dir/documented" "$dir/fields" || fail "< are the fields that README.md names, > those that there are"
for name in ratio_low ratio_high processor_ratio; do
    case $(field $name "$dir/alone") in
    *[0-9]*) ;;
    *) fail "$name of rpc_null is $(field $name "$dir/alone")" ;;
    esac
done
case $(field verdict "$dir/alone") in
'"ok"' | '"missed"') ;;
*) fail "the verdict is $(field verdict "$dir/alone")" ;;
esac

# ---- upstream's library
get=ipc_get_unpooled_vs_upstream
skipped() {
    "$bench/umf_ipc" $get | grep -q "^$get  *skipped: .*$1" || fail "$get is not skipped for: $1"
}
skipped 'BENCH_UMF names no'
export BENCH_UMF=$dir/upstream
skipped 'no libumf.so.0'
if [ "${SANITIZERS:-no}" != no ] || [ ! -e "$builddir/client/.libs/libmemclient-umf.so.0" ]; then
    echo "BENCH_UMF is not tried: sanitizers want no such library, or there is no shared one"
else
    echo >"$dir/upstream/libumf.so.0"
    skipped "$dir/upstream/libumf.so.0"
    rm "$dir/upstream/libumf.so.0"
    mkdir "$dir/upstream/lib"
    ln -s "$builddir/client/.libs/libmemclient-umf.so.0" "$dir/upstream/lib/libumf.so.0"
    "$bench/umf_ipc" --json "$dir/umf" $get >"$dir/out" || fail "$get with our own library fails"
    [ "$(field rival "$dir/umf")" != null ] && [ "$(field rounds "$dir/umf")" -ge 6 ] || fail "$(cat "$dir/umf")"
fi
echo "what is told is what is documented"
