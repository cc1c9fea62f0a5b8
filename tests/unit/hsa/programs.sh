#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Programs written to HSA's headers alone. PROGRAM_ROUNDS=10 does more, as make check-long does.
set -euo pipefail
# shellcheck source=tests/support/programs.sh
source "$srcdir/tests/support/programs.sh"

begin_programs tests/unit/hsa/programs memclient-hsa
run_programs
end_programs
