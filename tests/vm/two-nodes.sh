#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two NUMA nodes with a CPU each.
. "${srcdir:?}/tests/vm/lib.sh"
vm_machine two-nodes
vm_runs tests/kernel/test-placement
vm_runs tests/kernel/test-peers
vm_runs tests/kernel/test-seals
vm_runs tests/integration/test-dma-buf
vm_runs tests/integration/test-foreign
vm_runs tests/unit/sys/test-topology
vm_runs tests/unit/umf/programs/memspaces
vm_runs tests/unit/umf/test-memspace
vm_runs tests/unit/umf/test-os-numa
vm_runs tests/unit/umf/test-os-shared
vm_runs tests/integration/test-nearest
vm_runs tests/integration/test-heap-memory
vm_runs tests/integration/hostile/test-huge-holes
vm_runs_everywhere
vm_go
