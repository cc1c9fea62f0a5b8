#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Linux 5.10, the oldest that memoryd claims to run on: what it lacks, and that everything else holds.
. "${srcdir:?}/tests/vm/lib.sh"
vm_machine big
vm_kernel floor
# first, while memory still has room for a page of 1 GiB in one piece
vm_runs_without 'has no MADV_POPULATE_WRITE' tests/kernel/test-commit
vm_runs_without 'has no SO_PEERPIDFD' tests/kernel/test-peers
vm_runs_without 'has no MFD_NOEXEC_SEAL' tests/kernel/test-seals
vm_runs_without 'has no MADV_POPULATE_WRITE' tests/kernel/test-placement
vm_runs tests/integration/hostile/test-memory-max
vm_runs_everywhere
vm_go
