/* SPDX-License-Identifier: Apache-2.0 */
/* See caller.h. */
#include "tests/unit/client/caller.h"

#include <stdio.h>

#include "base/align.h"
#include "base/clock.h"
#include "rpc/fail.h"
#include "rpc/stubs.h"
#include "tests/support/test.h"

static void *run_caller(void *data)
{
    struct caller *c = data;
    uint64_t deadline = deadline_after_ms(c->ms);

    switch (c->what) {
    case PING:
        c->result = rpc_ping(rpc_route_of(c->channel, deadline));
        break;
    case ALLOC: {
        struct alloc_spec spec = {.n = 1, .sizes = &(uint64_t){1}};
        struct rpc_opened opened = RPC_OPENED_NULL;

        c->result = rpc_alloc(rpc_route_of(c->channel, deadline), &spec, &opened);
        if (!c->result)
            c->id = opened.items[0].id;
        rpc_opened_deinit(&opened);
        break;
    }
    case RESERVE: {
        struct rpc_reserved reserved;

        c->result = rpc_reserve(rpc_route_of(c->channel, deadline), page_size(), 0, 0, &reserved);
        if (!c->result)
            c->id = reserved.reservation;
        break;
    }
    case IMPORT: {
        struct rpc_opened opened = RPC_OPENED_NULL;

        c->result = rpc_import(rpc_route_of(c->channel, deadline), c->fd, &opened);
        if (!c->result)
            c->id = opened.items[0].id;
        rpc_opened_deinit(&opened);
        break;
    }
    case RELEASE:
    case GIVE_BACK:
        rpc_release(rpc_route_of(c->channel, deadline), 1, &(uint64_t){1}, c->what == RELEASE);
        c->result = 0;
        break;
    case SHARE: {
        struct memclient_share_options options = MEMCLIENT_SHARE_OPTIONS_INIT;
        struct rpc_shared shared;
        uint64_t id = 1;

        c->result = rpc_share(rpc_route_of(c->channel, deadline), 1, &id, &options, &shared);
        break;
    }
    }
    c->status = fail_status();
    snprintf(c->sentence, sizeof(c->sentence), "%s", fail_sentence());
    return NULL;
}

static void start(struct caller *caller)
{
    assert_int_equal(pthread_create(&caller->thread, NULL, run_caller, caller), 0);
}

void caller_start(struct caller *caller, struct channel *channel, enum caller_wish what, uint64_t ms)
{
    *caller = (struct caller){.channel = channel, .what = what, .ms = ms};
    start(caller);
}

void caller_start_import(struct caller *caller, struct channel *channel, int fd, uint64_t ms)
{
    *caller = (struct caller){.channel = channel, .what = IMPORT, .fd = fd, .ms = ms};
    start(caller);
}

int caller_finish(struct caller *caller)
{
    assert_int_equal(pthread_join(caller->thread, NULL), 0);
    return caller->result;
}

uint64_t expect(int broker, enum method method, struct fake_request *request)
{
    assert_true(fake_receive(broker, request));
    assert_int_equal(request->header.method, method);
    return request->header.sequence;
}

uint64_t expect_plain(int broker, enum method method)
{
    struct fake_request request;
    uint64_t sequence = expect(broker, method, &request);

    fake_request_deinit(&request);
    return sequence;
}
