/* SPDX-License-Identifier: Apache-2.0 */
/* How a process ended, asked of its pidfd: linux/pidfd.h, which is younger than some headers (Linux 6.13, 6.15). */
#pragma once

#include <stdint.h>
#include <sys/ioctl.h>

/* As far as every kernel has it that has any of it. */
struct pidfd_end {
    uint64_t mask; /* of what is asked, and then of what is known */
    uint64_t cgroup;
    uint32_t unused[11];
    int32_t status; /* as of wait(2), with PIDFD_END_STATUS in the mask */
};

#define PIDFD_END_REQUEST _IOWR(0xff, 11, struct pidfd_end)
#define PIDFD_END_STATUS  UINT64_C(8) /* known only once it has been reaped */
