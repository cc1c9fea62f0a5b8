/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tests of the facades begin with: a broker with simulated nodes, which the process-wide context finds, and a
 * session of the test's own beside the facade's, which sees what the broker has.
 */
#pragma once

#include <stdint.h>

#include <memclient/memclient.h>

#include "tests/integration/broker.h"
#include "tests/support/wait.h"

extern struct broker_process observed;

/* `config` is more of the broker's configuration, or NULL. */
void observer_start(unsigned nodes, const char *config);
void observer_stop(void);
/* Of a whole program: two nodes, and nothing else configured; the end goes with any beginning. */
int observer_group_setup(void **state);
int observer_group_teardown(void **state);

/*
 * Requests that the broker has served so far, the observer's own not counted. What a session gives back it does not
 * wait for: who wants to know what is called from now on lets a call of that session come first, which is answered
 * after all that was given back before; of the process-wide context, observer_settle().
 */
uint64_t observer_requests(void);
void observer_settle(void);
/* The same when all that this context (NULL: the process-wide one) gave back has been served; its ping is ours. */
uint64_t observer_settled_requests(struct memclient_context *ctx);
/* Of that context. It may cost less one day, and not more. */
#define observer_assert_costs(ctx, wanted, statement)                           \
    do {                                                                        \
        uint64_t before_ = observer_settled_requests(ctx);                      \
                                                                                \
        statement;                                                              \
        assert_in_range(observer_settled_requests(ctx) - before_, 0, (wanted)); \
    } while (0)
/* Has the broker replaced by the installed program, as memctl does. */
void observer_upgrade(void);
/* Buffers that it has: to be waited for, for the same reason. */
uint64_t observer_buffers(void);
/* Waits until it has none, nor any that only a descriptor or a mapping keeps; and its sums are right. */
void observer_expect_nothing(void);
