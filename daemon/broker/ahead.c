/* SPDX-License-Identifier: Apache-2.0 */
/* What may be ahead, and until when; ahead.h tells why. */
#include "broker/ahead.h"

#include <sys/resource.h>

#include "base/checked.h"
#include "base/clock.h"
#include "broker/check.h"
#include "mem/handle.h"
#include "mem/token.h"

/* A look at one takes less than a microsecond, but for what else the machine does meanwhile, not each time. */
#define LOOK_NS (20 * NSEC_PER_USEC)
#define LOOKS   3
/* All of them together: several times what as many as there may be take. */
#define LOOK_ALL_NS (2 * NSEC_PER_MSEC)

/*
 * Their descriptors may lie in their sessions' sockets for as long as those like, and the kernel counts them against
 * this process: a sixteenth of what clients may have on the way together.
 */
uint64_t ahead_most(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit))
        return 0;
    return limit.rlim_cur / 64 < BUFFERS_AHEAD_MAX ? limit.rlim_cur / 64 : BUFFERS_AHEAD_MAX;
}

bool ahead_may_be(const struct broker *broker, const struct session *session, const struct pool *pool,
                  const struct alloc_args *args)
{
    /* all that the session has ahead is charged to its account */
    const struct account *account = session->account;
    uint64_t bytes = 0, rounded;

    for (uint32_t i = 0; i < args->n; i++)
        if (!checked_align_up_u64(args->sizes[i], pool->granule, &rounded) || !checked_add_u64(bytes, rounded, &bytes))
            return false;
    return account->ahead[ACCOUNT_BUFFERS] + args->n <= MEMORYD_AHEAD_MAX &&
           bytes <= MEMORYD_AHEAD_BYTES && account->ahead[ACCOUNT_BYTES] + bytes <= MEMORYD_AHEAD_BYTES &&
           broker->buffers.n_ahead + args->n <= broker->ahead_max && pool_may_have_ahead(pool, bytes) &&
           account_may_have_ahead(account, ACCOUNT_BYTES, bytes) &&
           account_may_have_ahead(account, ACCOUNT_BUFFERS, args->n);
}

static void set_ahead(struct broker *broker, struct buffer *buffer, bool ahead)
{
    check_crediting(broker, CHECK_BUFFER, buffer);
    buffer_set_ahead(&broker->buffers, buffer, ahead);
    check_charged(broker, CHECK_BUFFER, buffer);
    list_for_each_entry(token, &buffer->tokens, struct token, in_buffer)
    {
        check_crediting(broker, CHECK_TOKEN, token);
        token_set_ahead(token, ahead);
        check_charged(broker, CHECK_TOKEN, token);
    }
}

void ahead_begin(struct broker *broker, struct buffer *buffer)
{
    ledger_need(broker->ledger, LEDGER_AHEAD);
    set_ahead(broker, buffer, true);
}

void ahead_used(struct broker *broker, struct buffer *buffer)
{
    if (buffer_is_ahead(buffer))
        set_ahead(broker, buffer, false);
}

/*
 * Was it taken? The kernel goes through all locks of the file to find this one, and its session may make as many as it
 * likes. Whose file takes longer than anything but many locks could again and again has used it: then it is not looked
 * at any more, and nobody waits for that (I7). Adds to *took what it takes without what else the machine does.
 */
static bool is_taken(const struct buffer *buffer, uint64_t *took)
{
    uint64_t least = UINT64_MAX;
    bool is = false;

    for (unsigned i = 0; i < LOOKS && !is && least >= LOOK_NS; i++) {
        uint64_t begin = clock_now_ns(), one;

        is = handle_is_taken(buffer->fd);
        one = clock_now_ns() - begin;
        least = one < least ? one : least;
    }
    /* what was found at once may have been disturbed */
    *took += is && least > LOOK_NS ? LOOK_NS : least;
    return is || least >= LOOK_NS;
}

void ahead_look(struct broker *broker)
{
    struct buffers *buffers = &broker->buffers;
    uint64_t took = 0;

    /* from the end: one that is used leaves its place to the last, which has been looked at */
    for (uint64_t i = buffers->n_ahead; i-- && took < LOOK_ALL_NS;) {
        struct buffer *buffer = buffers_find(buffers, buffers->ahead[i]);

        if (is_taken(buffer, &took))
            ahead_used(broker, buffer);
    }
    /* somebody has seen to it that they take too long together: nobody waits for that again */
    while (took >= LOOK_ALL_NS && buffers->n_ahead)
        ahead_used(broker, buffers_find(buffers, buffers->ahead[buffers->n_ahead - 1]));
}

void ahead_told(struct broker *broker, struct session *session, const struct ids *ids)
{
    for (uint32_t i = 0; i < ids->n; i++) {
        struct hold *hold = session_hold(session, ids->id[i]);

        if (hold)
            ahead_used(broker, hold->buffer);
    }
}
