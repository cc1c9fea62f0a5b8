#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Much memory: pages of 1 GiB, and 100 000 live buffers.
. "${srcdir:?}/tests/vm/lib.sh"
vm_machine big
vm_runs tests/kernel/test-commit
vm_runs tests/kernel/test-many
vm_needs daemon/memoryd
vm_runs tests/integration/test-commit
vm_runs tests/integration/test-large
vm_go
