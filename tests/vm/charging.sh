#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Control groups of version 2 with limits of memory: who pays for what. Other machines have the first of these, too.
. "${srcdir:?}/tests/vm/lib.sh"
vm_machine two-nodes
vm_runs tests/kernel/test-charging
vm_needs daemon/memoryd
vm_runs tests/integration/hostile/test-memory-max
vm_runs_without 'this kernel tells nobody how a process ended' tests/integration/test-oom
vm_go
