#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# nnabla's classes over memoryd, for C++: programs with a stand-in for nnabla's headers, as C++14 and as C++17, on a
# broker that gives a user no more than LIMIT bytes. NNABLA=FLAGS takes nnabla itself: where its headers are, and what is
# to be linked.
set -euo pipefail
# shellcheck source=tests/support/programs.sh
source "$srcdir/tests/support/programs.sh"

config='[limits]
uid_bytes = 64M'
standards='c++14 c++17'
flags=(-pedantic -Wold-style-cast -I"$srcdir/include" "-DLIMIT=(64 << 20)")
# word splitting wanted
# shellcheck disable=SC2206
[ -z "${NNABLA-}" ] && flags+=(-I"$srcdir/tests/unit/nbla/stand-in") || flags+=(-w $NNABLA)
begin_programs tests/unit/nbla/adaptor memclient-nbla "${flags[@]}"
[ ${#programs[@]} -gt 0 ] || { echo "no C++ compiler, or one with sanitizers"; exit 77; }
run_programs
end_programs
