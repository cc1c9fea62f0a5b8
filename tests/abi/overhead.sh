#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A program in C++ calls what it would call in C, and nothing else: what GCC makes of the functions of overhead.cpp has
# the same calls, but for those to which it comes only when something has failed. (GCC puts these into a section of
# their own.)
set -eu

case $("${TEST_CXX%% *}" --version 2>/dev/null) in
    *"Free Software Foundation"*) ;;
    *) echo "no g++"; exit 77 ;;
esac
command -v objdump >/dev/null || { echo "no objdump"; exit 77; }
object=${TMPDIR:-/tmp}/overhead.o
# word splitting wanted
# shellcheck disable=SC2086
$TEST_CXX -std=c++17 -O2 -fPIE -I"$srcdir/include" -c -o "$object" "$srcdir/tests/abi/overhead.cpp"

# code FUNCTION: its instructions, with relocations
code() {
    objdump -dr --no-show-raw-insn -j .text "$object" | sed -n "/<$1>:/,/^$/p" | tail -n +2
}
calls() {
    code "$1" | sed -nE 's/.*R_[A-Z0-9_]*(PLT32|CALL26|JUMP26)[[:space:]]*([A-Za-z_0-9]*).*/\2/p' | sort
}
count=0
for c in $(objdump -t "$object" | sed -n 's/.* \([a-z]*_c\)$/\1/p'); do
    calls "$c" >"$object.c"
    calls "${c}pp" >"$object.cpp"
    grep -q '^memclient_' "$object.c" || { echo "$c calls nothing of ours"; exit 1; }
    cmp -s "$object.c" "$object.cpp" || { echo "$c and ${c}pp call:"; diff "$object.c" "$object.cpp"; exit 1; }
    echo "${c%_c}: $(code "$c" | grep -vc R_) instructions in C, $(code "${c}pp" | grep -vc R_) in C++"
    count=$((count + 1))
done
[ $count -gt 0 ] || { echo "no functions found"; exit 1; }
