#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Each installed header compiles alone, and twice, as strict C11 and as strict C++17, without a warning.
set -eu

flags="-fsyntax-only -pedantic -Wall -Wextra -Wundef -Werror -I$srcdir/include"
rc=0
count=0

# try LANGUAGE COMPILER HEADER: the compiler and the flags are lists of words
try() {
    printf '#include <%s>\n#include <%s>\n' "$3" "$3" |
        # shellcheck disable=SC2086
        $2 $1 $flags - || { echo "$3 does not compile alone ($1)"; rc=1; }
}

while read -r path; do
    header=${path#"$srcdir"/include/}
    case $header in
        *.h) try "-x c -std=c11" "$CC" "$header"
             try "-x c -std=c17 -Wstrict-prototypes -Wmissing-prototypes" "$CC" "$header" ;;
    esac
    [ -z "$TEST_CXX" ] || try "-x c++ -std=c++17 -Wold-style-cast" "$TEST_CXX" "$header"
    count=$((count + 1))
done < <(find "$srcdir/include/memclient" -name '*.h' -o -name '*.hpp')

[ $rc = 0 ] || exit 1
[ $count -gt 0 ] || { echo "no installed headers found"; exit 1; }
[ -n "$TEST_CXX" ] || { echo "the C++ half was not tried: no C++ compiler"; exit 77; }
echo "$count headers, each alone"
