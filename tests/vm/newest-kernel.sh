#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The newest kernel that Debian has: what only new ones have, such as the end of a process and sockets that take no
# descriptors, with control groups of version 2; and that everything else holds.
. "${srcdir:?}/tests/vm/lib.sh"
vm_machine big
vm_kernel newest
# first, while memory still has room for a page of 1 GiB in one piece
vm_runs tests/kernel/test-commit
vm_runs tests/kernel/test-peers
vm_runs tests/kernel/test-seals
vm_runs tests/kernel/test-placement
vm_runs tests/integration/test-oom
vm_runs tests/kernel/test-status
vm_runs tests/integration/test-events
vm_runs tests/integration/hostile/test-alien-descriptor
vm_runs tests/integration/hostile/test-dying
vm_runs tests/integration/hostile/test-memory-max
vm_runs tests/unit/door/test-doors
# pages of hugetlb, of which this kernel does not say who has them
vm_runs tests/integration/test-mappings
vm_runs tests/integration/test-heap-memory
vm_runs tests/integration/test-hold-cache
vm_runs tests/integration/hostile/test-huge-holes
vm_runs tests/integration/hostile/test-left-over
vm_runs tests/integration/hostile/test-meddling
vm_runs_everywhere
vm_go
