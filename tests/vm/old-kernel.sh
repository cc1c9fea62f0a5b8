#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Linux 6.1, which lacks SO_PEERPIDFD and MFD_NOEXEC_SEAL: the fallbacks, and that everything else holds.
. "${srcdir:?}/tests/vm/lib.sh"
vm_machine big
vm_kernel old
# first, while memory still has room for a page of 1 GiB in one piece
vm_runs tests/kernel/test-commit
vm_runs_without 'has no SO_PEERPIDFD' tests/kernel/test-peers
vm_runs_without 'has no MFD_NOEXEC_SEAL' tests/kernel/test-seals
vm_runs tests/kernel/test-placement
# where the broker looks before it receives
vm_runs_without 'before 6.16' tests/integration/hostile/test-alien-descriptor
vm_runs tests/integration/hostile/test-dying
vm_runs tests/unit/door/test-doors
vm_runs_everywhere
vm_go
