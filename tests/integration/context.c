/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/integration/context.h"

struct broker_process broker;
struct memclient_context *ctx;

int context_setup(void **state)
{
    broker_start(&broker, NULL, 0);
    ctx = broker_connect(&broker);
    return 0;
}

int context_teardown(void **state)
{
    memclient_context_close(ctx);
    broker_stop(&broker);
    return 0;
}

struct memclient_buffer *make(uint64_t size, unsigned flags)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *buf = NULL;

    options.flags = flags;
    assert_done(memclient_alloc(ctx, size, &options, &buf));
    return buf;
}
