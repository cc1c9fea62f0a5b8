#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Each installed header compiles alone, and twice, as strict C11, C17 and C++17, without a warning. Those that stand in
# for another vendor's are included by programs that exist already: also as C99 and C++98, found by either folder, and
# next to the native one.
set -eu

flags="-fsyntax-only -pedantic -Wall -Wextra -Wundef -Werror"
rc=0
count=0

# try COMPILER "FLAGS" HEADER...: the compiler and the flags are lists of words
try() {
    local compiler=$1 words=$2
    shift 2
    # shellcheck disable=SC2086
    printf '#include <%s>\n' "$@" "$@" |
        $compiler $words $flags - || { echo "$* does not compile alone ($words)"; rc=1; }
}

while read -r path; do
    header=${path#"$srcdir"/include/}
    root=-I$srcdir/include
    case $header in
        *.h) try "$CC" "-x c -std=c11 $root" "$header"
             try "$CC" "-x c -std=c17 -Wstrict-prototypes -Wmissing-prototypes $root" "$header" ;;
    esac
    [ "$header" != memclient/nbla_memory.hpp ] || root+=" -I$srcdir/tests/unit/nbla/stand-in"
    [ -z "$TEST_CXX" ] || try "$TEST_CXX" "-x c++ -std=c++17 -Wold-style-cast -Wshadow $root" "$header"
    count=$((count + 1))
done < <(find "$srcdir/include/memclient" -name '*.h' -o -name '*.hpp')

# foreign FACADE HEADER...: as such programs include them, each alone and all together
foreign() {
    local standard header
    local root=-I$srcdir/include/memclient/$1
    shift
    for header in "$@" "$*"; do
        for standard in c99 gnu99 c11 gnu11 c17; do
            # shellcheck disable=SC2086
            try "$CC" "-x c -std=$standard -Wstrict-prototypes $root" $header
        done
        [ -n "$TEST_CXX" ] || continue
        for standard in c++98 c++11 c++17 c++20; do
            # shellcheck disable=SC2086
            try "$TEST_CXX" "-x c++ -std=$standard -Wold-style-cast $root" $header
        done
    done
}

# the names in a facade's folder
names() {
    (cd "$srcdir/include/memclient/$1" && find . -name '*.h' -printf '%P\n' | sort)
}

# the names have no blanks
# shellcheck disable=SC2046
foreign hsa $(names hsa)
# shellcheck disable=SC2046
foreign umf $(names umf)

for path in "$srcdir"/include/memclient/hsa/hsa/*.h; do
    for standard in c99 c17; do
        try "$CC" "-x c -std=$standard -Wstrict-prototypes -I${path%/*}" "${path##*/}"
    done
done
roots="-I$srcdir/include -I$srcdir/include/memclient/hsa -I$srcdir/include/memclient/umf"
try "$CC" "-x c -std=c11 $roots" hsa/hsa_ext_amd.h hsa/hsa_ext_memoryd.h \
    memclient/memclient.h hsa/hsa.h memclient/hsa/hsa/hsa.h
try "$CC" "-x c -std=c11 $roots" umf/ipc.h umf.h memclient/memclient.h memclient/umf/umf.h \
    memclient/umf/umf/providers/provider_memoryd.h hsa/hsa.h

[ $rc = 0 ] || exit 1
[ $count -gt 0 ] || { echo "no installed headers found"; exit 1; }
[ -n "$TEST_CXX" ] || { echo "the C++ half was not tried: no C++ compiler"; exit 77; }
echo "$count headers, each alone"
