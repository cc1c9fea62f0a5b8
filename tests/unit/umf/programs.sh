#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Programs written to UMF's headers alone, with the answers that nobody chose, with the document's, and with those of
# upstream's releases.
# PROGRAM_ROUNDS=10 does more, as make check-long does.
set -euo pipefail
# shellcheck source=tests/support/programs.sh
source "$srcdir/tests/support/programs.sh"

begin_programs tests/unit/umf/programs memclient-umf
for profile in "" document upstream; do
    echo "profile ${profile:-that nobody chose}:"
    export MEMORYD_UMF_PROFILE=$profile
    [ -n "$profile" ] || unset MEMORYD_UMF_PROFILE
    run_programs
done
# operators new and delete for programs without exceptions
if [ -n "${TEST_CXX-}" ]; then
    # shellcheck disable=SC2086
    echo '#include <umf/proxy_lib_new_delete.h>' |
        $TEST_CXX -std=c++17 -fno-exceptions -Wall -Wextra -Werror -I"$srcdir/include/memclient/umf" -fsyntax-only -x c++ - ||
        fail "umf/proxy_lib_new_delete.h needs exceptions"
fi
end_programs
