#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Nodes without CPUs: a small fast one and a slow one, as high-bandwidth memory and CXL memory are.
. "${srcdir:?}/tests/vm/lib.sh"
vm_machine tiers
vm_runs tests/kernel/test-placement
vm_runs tests/unit/sys/test-topology
vm_runs tests/unit/mem/test-nodes
vm_runs tests/unit/umf/programs/memspaces
vm_runs tests/unit/umf/test-memspace
vm_runs tests/unit/umf/test-memspace-pool
vm_needs daemon/memoryd
vm_runs tests/integration/test-placement
vm_runs tests/integration/test-nearest
vm_go
