/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of the client library against a real broker share. */
#pragma once

#include <errno.h>
#include <stdlib.h>

#include <memclient/memclient.h>

#include "tests/integration/broker.h"
#include "tests/support/child.h"
#include "tests/support/test.h"

/* The call must succeed; else the library's sentence is why. */
#define works(call)                                                                                \
    do {                                                                                           \
        int works_ = (call);                                                                       \
        if (works_ < 0)                                                                            \
            fail_msg("%s: %d, %s", #call, works_, memclient_error());                              \
    } while (0)

/* It must fail with this errno, and with a sentence. */
#define refuses(call, wanted)                                                                      \
    do {                                                                                           \
        int refuses_ = (call);                                                                     \
        if (refuses_ != -(wanted))                                                                 \
            fail_msg("%s: %d instead of %d, %s", #call, refuses_, -(wanted), memclient_error());   \
        assert_string_not_equal(memclient_error(), "");                                            \
    } while (0)

/* In a child: the same as CHECK(). */
#define CHECK_WORKS(call)                                                                          \
    do {                                                                                           \
        if ((call) < 0)                                                                            \
            child_give_up(memclient_error(), __FILE__, __LINE__);                                  \
    } while (0)

static inline struct memclient *open_client(const struct broker_process *broker)
{
    struct memclient_options options = MEMCLIENT_OPTIONS_INIT;
    struct memclient *ctx = NULL;

    options.socket = broker->socket;
    works(memclient_open(&options, &ctx));
    return ctx;
}

/* The broker has no session of this process left but this one, and its sums are right. */
static inline void is_healthy(struct memclient *ctx)
{
    struct memclient_check_result result = MEMCLIENT_CHECK_RESULT_INIT;

    works(memclient_check(ctx, &result));
    if (result.faults)
        fail_msg("%u faults: %s", result.faults, result.sentences[0]);
}

static inline uint64_t buffers_of(struct memclient *ctx)
{
    struct memclient_broker_status status = MEMCLIENT_BROKER_STATUS_INIT;

    works(memclient_status(ctx, &status));
    return status.buffers + status.buffers_detached;
}
