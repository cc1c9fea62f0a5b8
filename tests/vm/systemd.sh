#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The system units under a real systemd, as in a container, on a machine with four nodes, huge pages of both kinds on each,
# and limits of memory: machine.sh.
. "${srcdir:?}/tests/vm/lib.sh"
vm_machine four-large-nodes
vm_boots tests/integration/systemd-system.sh
