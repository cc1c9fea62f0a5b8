#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The examples of memclient-hsa(3) are programs: each is taken out of the manual, built with the library by strict
# rules, and does what it says, with a broker of its own.
set -eu

. "${srcdir:?}/tests/support/broker.sh"

flags=
case $SANITIZERS in
    no) ;;
    *thread*) echo "the thread sanitizer refuses the default arena"; exit 77 ;;
    *) flags=-fsanitize=$SANITIZERS ;;
esac

# a block's first line is its file's name in a comment
awk -v dir="$dir" '/^```/ { inside = !inside; file = ""; next }
    inside && match($0, /^\/\* [a-z]+\.[ch] \*\/$/) { file = dir "/" substr($0, 4, length($0) - 6) }
    file != "" { print >file }' "$srcdir/client/hsa/memclient-hsa.3.scd"

# expect NAME TEXT: the program says that, in the end
expect() {
    local said
    # shellcheck disable=SC2086
    $CC -std=gnu11 -Wall -Wextra -Werror -g $flags \
        -o "$dir/$1" "$dir/$1.c" -I"$srcdir/include/memclient" -L"$builddir/client/.libs" -lmemclient-hsa -lmemclient
    said=$(LD_LIBRARY_PATH=$builddir/client/.libs timeout 60 "$dir/$1" 2>&1) || { echo "$1: $said"; exit 1; }
    [[ $said = *"$2" ]] || { echo "$1 says: $said"; exit 1; }
    echo "$1: $said"
}

begin_broker
expect descriptor 'hello from the child'
expect ipc 'hello from the child'
expect growing '8388608 bytes, the last item is 2097151'
