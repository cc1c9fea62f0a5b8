#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two NUMA nodes with a CPU each.
. "${srcdir:?}/tests/vm/lib.sh"
vm_machine two-nodes
vm_runs tests/kernel/test-placement
vm_runs tests/kernel/test-addresses
vm_runs tests/kernel/test-ending
vm_runs tests/kernel/test-handover
vm_runs tests/kernel/test-identity
vm_runs tests/kernel/test-ledger
vm_runs tests/kernel/test-listening
vm_runs tests/kernel/test-peers
vm_runs tests/kernel/test-rights
vm_runs tests/kernel/test-seals
vm_runs tests/kernel/test-signals
vm_runs tests/kernel/test-sockets
vm_runs tests/unit/sys/test-topology
vm_runs tests/unit/mem/test-nodes
vm_needs daemon/memoryd
vm_runs tests/integration/test-placement
vm_runs tests/integration/test-commit
vm_runs tests/integration/test-rights
vm_runs tests/integration/test-ending
vm_runs tests/integration/test-death
vm_go
