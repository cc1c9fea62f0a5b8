#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# How long clients wait for the next broker with up to 100 000 buffers: to read, no time is asserted.
. "${srcdir:?}/tests/vm/lib.sh"
vm_machine big
vm_program_seconds=$vm_seconds
vm_exports RECOVERY_BUFFERS=100000
# making and killing takes long under emulation
vm_exports RECOVERY_ROUNDS=3
vm_exports BENCH_VISITS=1
vm_exports BENCH_PROGRAMS=tests/bench/recovery
vm_sets /proc/sys/fs/inotify/max_user_watches 300000
vm_needs daemon/memoryd client/memctl/memctl tests/bench/recovery tests/support/broker.sh \
    tests/bench/memoryd.conf
vm_runs tests/bench/bench.sh
vm_go
