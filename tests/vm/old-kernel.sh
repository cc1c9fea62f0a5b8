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
vm_runs tests/kernel/test-addresses
vm_runs tests/kernel/test-ending
vm_runs tests/kernel/test-handover
vm_runs tests/kernel/test-identity
vm_runs tests/kernel/test-ledger
vm_runs tests/kernel/test-listening
vm_runs tests/kernel/test-rights
vm_runs tests/kernel/test-signals
vm_runs tests/kernel/test-sockets
vm_runs tests/unit/sys/test-peer
vm_runs tests/unit/mem/test-commit
vm_runs tests/unit/mem/test-handle
vm_runs tests/unit/mem/test-nodes
vm_needs daemon/memoryd
vm_runs tests/integration/test-commit
vm_runs tests/integration/test-rights
vm_runs tests/integration/test-ending
vm_runs tests/integration/test-death
vm_runs tests/integration/test-identity
vm_runs tests/integration/test-sums
vm_runs tests/integration/test-placement
vm_go
