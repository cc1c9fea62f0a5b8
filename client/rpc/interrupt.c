/* SPDX-License-Identifier: Apache-2.0 */
/* See interrupt.h. */
#include "rpc/interrupt.h"

#include <errno.h>
#include <stddef.h>

#include "base/clock.h"
#include "rpc/fail.h"

/* How long a wait is that a signal does not end, or that misses one which came just before. */
#define INTERRUPT_NS (100 * NSEC_PER_MSEC)

static __thread struct {
    interrupt_function *function;
    void *data;
} interrupt;

void interrupt_set(interrupt_function *function, void *data)
{
    interrupt.function = function;
    interrupt.data = data;
}

bool interrupt_is_set(void)
{
    return interrupt.function;
}

bool interrupt_is_wanted(void)
{
    return interrupt.function && interrupt.function(interrupt.data);
}

int interrupt_fail(void)
{
    return fail_with(EINTR, "the program has ended the wait");
}

uint64_t interrupt_deadline(uint64_t deadline)
{
    uint64_t soon = interrupt.function ? deadline_after_ns(INTERRUPT_NS) : deadline;

    return soon < deadline ? soon : deadline;
}
