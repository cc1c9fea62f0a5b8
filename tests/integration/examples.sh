#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The examples of the manuals are programs: each is taken out of its page, as a reader has it before him, built with
# the library by strict rules and the flags of its pkg-config file, and does what it says, with a broker of its own.
set -eu

. "${srcdir:?}/tests/support/broker.sh"

flags=
case $SANITIZERS in
    no) ;;
    *thread*) echo "the thread sanitizer refuses the default arena"; exit 77 ;;
    *) flags=-fsanitize=$SANITIZERS ;;
esac

command -v groff >/dev/null || { echo "groff is missing"; exit 77; }

# for_tree WHAT MODULE...: what their pkg-config files say of an installation, said of this tree
for_tree() {
    local what=$1
    shift
    PKG_CONFIG_PATH=$dir/pkgconfig pkg-config "$what" "$@"
}
mkdir "$dir/pkgconfig"
for file in "$builddir"/client/*.pc; do
    sed -e "s|^includedir=.*|includedir=$srcdir/include|" -e "s|^libdir=.*|libdir=$builddir/client/.libs|" "$file" \
        >"$dir/pkgconfig/${file##*/}"
done

# manual FOLDER PAGE [MODULE...]: what is expected from here on is in that page, which is rendered as for a wide terminal.
# An example's first line is its file's name in a comment; it ends where the text is indented less. It is built with these
# modules of pkg-config, without any with the page's own.
manual() {
    folder=$dir/$2
    mkdir -p "$folder"
    [ -e "$builddir/client/$1/$2.3" ] || { echo "the manuals were not made: scdoc is missing"; exit 77; }
    groff -t -man -Tutf8 -P-cbou -rLL=200n "$builddir/client/$1/$2.3" >"$folder/page"
    awk -v dir="$folder" '
        { match($0, /^ */); indent = RLENGTH }
        match($0, /\/\* [a-z]+\.(c|cpp|h) \*\/$/) && indent + RLENGTH == length($0) {
            file = dir "/" substr($0, indent + 4, RLENGTH - 6); depth = indent }
        NF && indent < depth { file = "" }
        file != "" { print substr($0, depth + 1) >file }' "$folder/page"
    modules=${*:3}
    modules=${modules:-$2}
}

# expect NAME TEXT: the program says that, in the end
expect() {
    local said program=$folder/$1 compiler="$CC -std=gnu11" source=$folder/$1.c
    if [ ! -e "$source" ]; then
        [ -n "$TEST_CXX" ] && [ "$SANITIZERS" = no ] || return 0
        compiler="$TEST_CXX -std=c++17" source=$program.cpp
    fi
    # shellcheck disable=SC2046,SC2086
    $compiler -Wall -Wextra -Werror -g $flags -o "$program" "$source" \
        $(for_tree --cflags $modules) $(for_tree --libs $modules) "-Wl,-rpath-link,$builddir/client/.libs"
    said=$(LD_LIBRARY_PATH=$builddir/client/.libs timeout 60 "$program" 2>&1) || { echo "$1: $said"; exit 1; }
    [[ $said = *"$2" ]] || { echo "$1 says: $said"; exit 1; }
    echo "${folder##*/}: $1: $said"
}

begin_test_broker
manual api memclient
expect hello 'hello from the parent'
manual api memclient memclient memclient-nbla memclient-umf memclient-hsa
expect crossing 'nnabla, UMF, HSA, memclient'
manual api memclient_context memclient
expect session 'ask for at least 1'
manual api memclient_alloc memclient
expect publish 'nobody changes this any more'
manual api memclient_cache memclient
expect again 'used again without a request'
manual api memclient_map memclient
expect array 'across the border'
manual api memclient_share memclient
expect once 'read by its descriptor'
manual api memclient_name memclient
expect owner 'one at a time'
manual api memclient_event memclient
expect watch 'example/watched is bound'
expect holders 'the child died and holds it no more'
manual api memclient_list memclient
expect pools 'there is memory'
manual api memclient_broker memclient
expect check '0 faults'
manual heap memclient_heap memclient
expect handing 'hello'
manual api memclient.hpp memclient
expect hello 'hello from the parent'
expect codes "refused: no buffer has the name example/nothing; another user's is written uid:N/..."
expect words '2 times "same"'
manual hsa memclient-hsa
expect descriptor 'hello from the child'
expect ipc 'hello from the child'
expect growing '8388608 bytes, the last item is 2097151'
manual umf memclient-umf
expect list 'linked by pointers'
expect counting '0 bytes, at most 196608'
manual nbla memclient-nbla
expect blocks 'hello from the second block'
expect growing '16 chunks, 16777216 bytes: the first chunk stays'
manual opencl memclient-opencl
expect shared 'shared'

# memctl(1): a filter of jq, as the page has it
groff -t -man -Tutf8 -P-cbou -rLL=200n "$builddir/client/memctl/memctl.1" >"$dir/memctl"
filter=$(sed -n "s/^.*memctl events --follow --json | jq -r '\(.*\)'\$/\1/p" "$dir/memctl")
said=$(printf '{"kind": "ended", "signal": %s, "program": "camera"}\n' 9 null | jq -r "${filter:?}")
[ "$said" = 'camera 9' ] || { echo "the filter of memctl(1), $filter, says: $said"; exit 1; }

for program in "$dir"/*/*.c "$dir"/*/*.cpp; do
    [ -e "${program%.*}" ] || [[ $program = *.cpp && ( -z $TEST_CXX || $SANITIZERS != no ) ]] || { echo "nothing is expected of ${program#"$dir/"}"; exit 1; }
done
