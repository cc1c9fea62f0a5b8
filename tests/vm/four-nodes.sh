#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Four NUMA nodes at three distances.
. "${srcdir:?}/tests/vm/lib.sh"
vm_machine four-nodes
vm_runs tests/kernel/test-placement
vm_runs tests/unit/sys/test-topology
vm_runs tests/unit/mem/test-nodes
vm_runs tests/unit/umf/programs/memspaces
vm_needs daemon/memoryd
vm_runs tests/integration/test-placement
vm_runs tests/integration/test-nearest
vm_go
