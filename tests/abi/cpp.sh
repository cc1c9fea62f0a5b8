#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A program in C++ compiles by each compiler and as each standard, with the warnings that a careful one turns on, and
# without exceptions. Where there is just one compiler, the rest is tried and the test is skipped.
set -eu

flags="-fsyntax-only -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wold-style-cast -Wshadow -Wundef -Werror"
rc=0
missing=

# try COMPILER FLAG...
try() {
    # shellcheck disable=SC2086
    "$@" $flags -I"$srcdir/include" "$srcdir/tests/abi/program.cpp" ||
        { echo "it does not compile by $*"; rc=1; }
}

for compiler in g++ clang++; do
    command -v $compiler >/dev/null || { missing+=" $compiler"; continue; }
    try $compiler -std=c++17 -fno-exceptions -fno-rtti
    # 2b is the name of 23 for compilers of its time
    for standard in c++17 c++20 c++2b; do
        try $compiler -std=$standard
    done
done
[ $rc = 0 ] || exit 1
[ -z "$missing" ] || { echo "these compilers are missing:$missing"; exit 77; }
