/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first buffers in an order, and sums over all that were asked for.
 *
 * All records are looked at for that, in slices: one may be made or end, or change its place in the order, between two
 * of them. What is kept meanwhile are the ids of a page. Its rows are made at the end, of what is still there then.
 */
#include <stdlib.h>
#include <string.h>

#include "broker/lookup.h"
#include "broker/op_list.h"
#include "broker/state.h"
#include "mem/pool.h"
#include "proto/status.h"
#include "work/turn.h"

/* Records between two looks at the clock. */
#define SELECT_LOOKS 64

/* A buffer's place in the order: the greatest number comes first, and of the same number the smallest id. */
struct rank {
    uint64_t number;
    uint64_t id;
};

struct selection {
    struct op_state state;
    struct broker *broker;
    struct select_args args;
    struct select_result *result; /* the caller's */
    struct select_result found;
    struct pool *pool;            /* NULL: any */
    uid_t uid;                    /* whose request it is */
    bool all;                     /* an administrator's */
    const struct session *holder; /* of this slice, if one was asked for and there is one */
    struct rank after;
    struct rank ranks[MEMORYD_SELECT_MAX]; /* of found.ids */
    uint64_t cursor;
};

static bool rank_is_before(struct rank a, struct rank b)
{
    return a.number > b.number || (a.number == b.number && a.id < b.id);
}

static uint64_t select_number(enum select_order order, const struct buffer *buffer)
{
    switch (order) {
    case SELECT_BYTES:
        return buffer->record->bytes;
    case SELECT_HOLDS:
        return buffer->n_holds;
    case SELECT_OLDEST:
        return UINT64_MAX - buffer->record->created_ms;
    case SELECT_NEWEST:
        return buffer->record->created_ms;
    }
    return 0;
}

/* Was it asked for, and may the caller see it? */
static bool select_wants(const struct selection *selection, const struct session *session, const struct buffer *buffer)
{
    const struct select_args *args = &selection->args;
    const struct buffer_record *record = buffer->record;

    if (buffer_is_unowned(buffer) || (args->only_uid && record->charged_uid != args->uid) ||
        (args->only_detached && !record->detached_ms) || (args->pid && record->pid != args->pid) ||
        (selection->pool && buffer_pool(&selection->broker->buffers, buffer) != selection->pool))
        return false;
    if (!selection->all && !may_see_buffer(selection->broker, session, buffer))
        return false;
    return !args->session || (selection->holder && session_hold(selection->holder, record->head.id));
}

/* The session that is to hold what is selected. What another user's holds is not the caller's to know. */
static const struct session *select_holder(const struct selection *selection)
{
    const struct session *holder = find_session(selection->broker, selection->args.session);

    return holder && (selection->all || holder->record->uid == selection->uid) ? holder : NULL;
}

static void select_add(struct selection *selection, const struct buffer *buffer)
{
    const struct buffer_record *record = buffer->record;
    struct select_sums *sums = &selection->found.sums;
    struct rank rank = {select_number(selection->args.order, buffer), record->head.id};
    uint32_t at = selection->found.n;

    sums->buffers++;
    sums->bytes += record->bytes;
    sums->huge_bytes += record->pages == PAGES_HUGETLB ? record->bytes : record->huge_bytes;
    sums->holds += buffer->n_holds;
    if (record->detached_ms) {
        sums->detached++;
        sums->detached_bytes += record->bytes;
    }
    if (selection->after.id && !rank_is_before(selection->after, rank))
        return;
    while (at && rank_is_before(rank, selection->ranks[at - 1]))
        at--;
    if (selection->found.n == selection->args.most)
        selection->found.more = true;
    else
        selection->found.n++;
    for (uint32_t i = selection->found.n; i-- > at + 1;)
        selection->ranks[i] = selection->ranks[i - 1];
    if (at < selection->found.n)
        selection->ranks[at] = rank;
}

/* False: there are more. */
static bool select_slice(struct selection *selection, const struct session *session)
{
    const struct table *table = &selection->broker->buffers.table;
    uint64_t begin = slice_begin();

    selection->holder = select_holder(selection);
    do {
        unsigned budget = SELECT_LOOKS;
        const struct buffer *buffer;

        while ((buffer = table_next(table, &selection->cursor, &budget)))
            if (select_wants(selection, session, buffer))
                select_add(selection, buffer);
    } while (selection->cursor && !slice_is_over(begin));
    if (selection->cursor)
        return false;
    for (uint32_t i = 0; i < selection->found.n; i++)
        selection->found.ids[i] = selection->ranks[i].id;
    *selection->result = selection->found;
    return true;
}

static void select_turn(struct op_state *state)
{
    struct selection *selection = container_of(state, struct selection, state);
    int status = state->cancel_status;
    struct session *session;

    if (!status)
        status = op_session(state->op, &session);
    if (!status && !select_slice(selection, session)) {
        pending_call_in_turn(state, selection->uid, select_turn);
        return;
    }
    pending_end(state, status);
    free(selection);
}

static struct rank select_after(const struct select_args *args)
{
    uint64_t number = args->after_number;

    return (struct rank){args->order == SELECT_OLDEST ? UINT64_MAX - number : number, args->after};
}

int op_select_buffers(struct op *op, const struct select_args *args, struct select_result *result)
{
    struct selection first = {.broker = op->broker, .args = *args, .result = result, .after = select_after(args)};
    struct selection *selection;
    struct session *session;
    int r = op_session(op, &session);

    if (r)
        return r;
    first.uid = session->record->uid;
    first.all = is_admin(op->broker, session);
    if (args->pool[0]) {
        first.pool = pools_by_name(op->broker->options.pools, args->pool);
        if (!first.pool)
            return refuse(&op->problem, STATUS_NO_SUCH_POOL, "there is no pool %s", args->pool);
    }
    if (select_slice(&first, session))
        return 0;
    selection = malloc(sizeof(*selection));
    if (!selection)
        return refuse(&op->problem, STATUS_NO_MEMORY, "the broker has no memory to select from so many; ask again");
    *selection = first;
    pending_begin(&op->broker->pending, &selection->state, op, NULL);
    pending_call_in_turn(&selection->state, selection->uid, select_turn);
    return OP_PENDING;
}

bool op_selected(struct op *op, uint64_t id, uint64_t holder, struct buffer_info *result)
{
    struct problem problem = PROBLEM_NULL;
    struct op again = {.broker = op->broker, .session = op->session, .problem = problem};
    struct session *session;
    const struct buffer *buffer = table_find(&op->broker->buffers.table, id);

    if (op_session(&again, &session) || !buffer || buffer_is_unowned(buffer) ||
        !may_see_buffer(op->broker, session, buffer))
        return false;
    list_fill_buffer(op->broker, session, buffer, result);
    if (holder)
        list_fill_holder(op->broker, session, buffer, holder, result);
    return true;
}
