#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# libmemclient-umf-proxy.so, preloaded: a program that looks closely, and real ones, whose output is the same as without.
set -u

library=${builddir:?}/client/.libs/libmemclient-umf-proxy.so
[ "${SANITIZERS:-no}" = no ] || { echo "a sanitizer has a malloc() of its own"; exit 77; }
[ -e "$library" ] || { echo "it is not built: there is no jemalloc"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export LD_LIBRARY_PATH=$builddir/client/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

fail() {
    echo "FAIL: $*"
    cat "$dir/err"
    exit 1
}

LD_PRELOAD=$library "$builddir/tests/unit/umf/preload" >"$dir/out" 2>"$dir/err" || fail "tests/unit/umf/preload: $?"
[ ! -s "$dir/err" ] || fail "it said something"
"$builddir/tests/unit/umf/preload" >"$dir/out" 2>"$dir/err" && fail "the test does not know whose malloc() it has"

# with few addresses, just more than a power of two as well
for limit in 2150000 4300000; do
    (ulimit -v $limit && LD_PRELOAD=$library "$builddir/tests/unit/umf/preload" limited) >"$dir/out" 2>"$dir/err" ||
        fail "tests/unit/umf/preload with ulimit -v $limit: $?"
done

# same COMMAND...
same() {
    "$@" >"$dir/wanted" 2>/dev/null </dev/null || { echo "$1 is not there"; return; }
    LD_PRELOAD=$library "$@" >"$dir/out" 2>"$dir/err" </dev/null || fail "$*: $?"
    [ ! -s "$dir/err" ] || fail "$* said something"
    cmp "$dir/wanted" "$dir/out" || fail "$*: another output"
    echo "$1: as ever"
}
for i in $(seq 20000); do echo "$((i * 7919 % 20011)) line"; done >"$dir/lines"
same ls -lR /usr/share/doc
same sort -n --parallel=4 "$dir/lines"
same bash -c 'x=(); for i in {1..3000}; do x+=("$i $(($i * 3))"); done; echo "${x[@]}"; (echo "${#x[@]}") | cat'
same perl -e 'my %h = map { $_ => "x" x $_ } 1 .. 3000; print map { "$_ " . length($h{$_}) . "\n" } sort keys %h;
              exit 0 unless fork; wait; exit $? >> 8'
same /usr/bin/python3 -c 'import json, threading
def work(): return [bytearray(i * 37) for i in range(1000)]
threads = [threading.Thread(target=work) for _ in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
print(len(json.dumps([{str(i): list(range(50))} for i in range(1000)])))'

# UMF_PROXY is ignored, and that is said
env UMF_PROXY=size.threshold=64 "LD_PRELOAD=$library" ls "$dir" >"$dir/out" 2>"$dir/err"
grep -q "UMF_PROXY is ignored" "$dir/err" || fail "nothing is said of UMF_PROXY"
