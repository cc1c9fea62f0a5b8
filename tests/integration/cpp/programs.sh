#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Programs in C++ with our headers, as C++20, on a broker: tests/abi/cpp.sh compiles one by all standards.
set -euo pipefail
# shellcheck source=tests/support/programs.sh
source "$srcdir/tests/support/programs.sh"

standards='c++20'
begin_programs tests/integration/cpp memclient -pedantic -Wconversion -Wsign-conversion -Wold-style-cast -Wshadow
[ ${#programs[@]} -gt 0 ] || { echo "no C++ compiler, or one with sanitizers"; exit 77; }
run_programs
end_programs
