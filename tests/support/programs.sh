# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# For scripts that run programs as users write them, to a facade's headers alone: each must say nothing and end with 0,
# on a broker with two nodes, which must have nothing left of them, and its sums right.
# shellcheck source=tests/support/broker.sh
source "${srcdir:?}/tests/support/broker.sh"

failed=0
programs=()

fail() {
    echo "FAIL: $*"
    failed=1
}

memctl() { "${builddir:?}/client/memctl/memctl" "$@"; }

# begin_programs FOLDER LIBRARY [FLAG...]: the broker serves, with what is in $config besides, and $programs are those of
# the folder. make has compiled the ones in C; those in C++ are compiled here, where there is a compiler for it, for each
# of $standards.
begin_programs() {
    local folder=$1 library=$2 source standard program compilers=() compiler
    shift 2

    command -v jq >/dev/null || { echo "jq is not installed"; exit 77; }
    # the arena is where every sanitizer leaves addresses to programs
    printf '%s\n[arena]\nbase = 0x566000000000\nsize = 128G\n[topology]\nsimulate_nodes = 2\n%s\n' "$ordinary_pages" \
        "${config-}" >"$dir/config"
    printf '#!/bin/sh\nexec %q "$@" --config %q\n' "$builddir/daemon/memoryd" "$dir/config" >"$dir/memoryd"
    chmod +x "$dir/memoryd"
    begin_broker "$dir/memoryd"
    for source in "$srcdir/$folder"/*.c; do
        [ ! -e "$source" ] || programs+=("$builddir/$folder/$(basename "${source%.c}")")
    done
    if [ -n "${TEST_CXX-}" ] && [ "${SANITIZERS:-no}" = no ]; then
        for source in "$srcdir/$folder"/*.cpp; do
            for standard in ${standards:-c++17}; do
                program=$dir/$(basename "${source%.cpp}")-$standard
                # word splitting wanted: compilers come with options
                # shellcheck disable=SC2086
                $TEST_CXX "-std=$standard" -pthread -Wall -Wextra -Werror -I"$srcdir/include" \
                    -I"$srcdir/include/memclient/${library#memclient-}" "$@" \
                    -o "$program" "$source" -L"$builddir/client/.libs" "-l$library" -lmemclient &
                compilers+=($!)
                programs+=("$program")
            done
        done
        for compiler in "${compilers[@]}"; do
            wait "$compiler" || { echo "a program does not compile"; exit 1; }
        done
    fi
    export LD_LIBRARY_PATH=$builddir/client/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}

nothing_left() {
    for _ in $(seq 300); do
        [ "$(memctl --json status | jq '.[0] | .buffers + .buffers_detached + .buffers_ending + .reservations')" = 0 ] && return
        sleep 0.1
    done
    return 1
}

run_programs() {
    local program name begun

    for program in "${programs[@]}"; do
        name=$(basename "$program")
        begun=$SECONDS
        if ! "$program" >"$dir/said" 2>&1; then
            fail "$name:"
            cat "$dir/said"
        elif [ -s "$dir/said" ]; then
            fail "$name said something:"
            cat "$dir/said"
        fi
        nothing_left || fail "something is left of $name: $(memctl buffers)"
        memctl check >"$dir/check" || fail "after $name: $(cat "$dir/check")"
        echo "$name: $((SECONDS - begun)) s"
    done
}

end_programs() {
    kill "$broker"
    wait "$broker" || fail "memoryd ended with $?: $(cat "$dir/log")"
    broker=
    exit $failed
}
