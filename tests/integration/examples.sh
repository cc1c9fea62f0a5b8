#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The examples of the facades' manuals are programs: each is taken out of its manual, built with the library by strict
# rules, and does what it says, with a broker of its own.
set -eu

. "${srcdir:?}/tests/support/broker.sh"

flags=
case $SANITIZERS in
    no) ;;
    *thread*) echo "the thread sanitizer refuses the default arena"; exit 77 ;;
    *) flags=-fsanitize=$SANITIZERS ;;
esac

# manual FACADE: what is expected from here on is in its manual. A block's first line is its file's name in a comment.
manual() {
    facade=$1
    mkdir "$dir/$facade"
    awk -v dir="$dir/$facade" '/^```/ { inside = !inside; file = ""; next }
        inside && match($0, /^\/\* [a-z]+\.[ch] \*\/$/) { file = dir "/" substr($0, 4, length($0) - 6) }
        file != "" { print >file }' "$srcdir/client/$facade/memclient-$facade.3.scd"
}

# expect NAME TEXT: the program says that, in the end
expect() {
    local said program=$dir/$facade/$1
    # shellcheck disable=SC2086
    $CC -std=gnu11 -Wall -Wextra -Werror -g $flags -o "$program" "$program.c" \
        -I"$srcdir/include" -I"$srcdir/include/memclient" -L"$builddir/client/.libs" \
        "-Wl,-rpath-link,$builddir/client/.libs" "-lmemclient-$facade" -lmemclient
    said=$(LD_LIBRARY_PATH=$builddir/client/.libs timeout 60 "$program" 2>&1) || { echo "$1: $said"; exit 1; }
    [[ $said = *"$2" ]] || { echo "$1 says: $said"; exit 1; }
    echo "$facade: $1: $said"
}

begin_test_broker
manual hsa
expect descriptor 'hello from the child'
expect ipc 'hello from the child'
expect growing '8388608 bytes, the last item is 2097151'
manual umf
expect list 'linked by pointers'
expect counting '0 bytes, at most 196608'
manual nbla
expect blocks 'hello from the second block'
expect growing '16 chunks, 16777216 bytes: the first chunk stays'
manual opencl
expect shared 'shared'
