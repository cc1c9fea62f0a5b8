/* SPDX-License-Identifier: Apache-2.0 */
/* The library, contexts and the connection. */
#include <pthread.h>
#include <string.h>

#include "api/check.h"
#include "core/context.h"
#include "proto/status.h"
#include "rpc/interrupt.h"

const char *memclient_version(void)
{
    return PACKAGE_VERSION;
}

const char *memclient_error(void)
{
    return fail_sentence();
}

unsigned memclient_error_status(void)
{
    return fail_status();
}

void memclient_set_interrupt(bool (*interrupted)(void *data), void *data)
{
    interrupt_set(interrupted, data);
}

const char *memclient_status_name(unsigned status)
{
    return status_name(status);
}

int memclient_context_open(const struct memclient_context_options *from, struct memclient_context **ctx)
{
    struct memclient_context_options options;
    int r = check_pointer(ctx, "ctx");

    if (!r)
        r = check_options(&options, sizeof(options), from, "options");
    if (!r && options.autostart > MEMCLIENT_AUTOSTART_ALWAYS)
        r = fail_with(EINVAL, "%u is no way of autostart", options.autostart);
    return r ? r : context_open(&options, ctx);
}

void memclient_context_close(struct memclient_context *ctx)
{
    if (ctx && !ctx->is_default)
        context_close(ctx);
}

int memclient_context_default(struct memclient_context **ctx)
{
    int r = check_pointer(ctx, "ctx");

    return r ? r : context_default(ctx);
}

/* The context may still have the figures of a session that is gone, so the broker is asked first. */
int memclient_context_query(struct memclient_context *ctx, struct memclient_context_info *info)
{
    struct memclient_context_info filled = MEMCLIENT_CONTEXT_INFO_INIT;
    int r;

    r = check_output(info, "info");
    if (!r)
        r = check_context(&ctx);
    if (!r)
        r = memclient_broker_ping(ctx);
    if (r)
        return r;
    pthread_mutex_lock(&ctx->lock);
    memcpy(filled.socket, ctx->path, sizeof(filled.socket));
    filled.session = ctx->session.session;
    filled.broker_id = ctx->session.broker;
    filled.broker_uid = ctx->session.broker_uid;
    filled.arena_base = ctx->session.arena_base;
    filled.arena_size = ctx->session.arena_size;
    filled.base_page = ctx->session.base_page;
    filled.simulated = ctx->session.simulated;
    filled.autostarted = ctx->autostarted;
    pthread_mutex_unlock(&ctx->lock);
    return write_output(info, &filled, sizeof(filled));
}

int memclient_broker_ping(struct memclient_context *ctx)
{
    int r = check_context(&ctx);

    return r ? r : rpc_ping(context_route(ctx));
}
