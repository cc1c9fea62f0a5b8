/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation: charged, placed, committed, recorded and held, or nothing at all.
 *
 * What is in stock is taken there and then. Else small ones are committed here and now, larger ones by a worker. What
 * finds no room may wait for it, and does wait, asked or not, where memory that is on its way back may do. Between any
 * two of these steps the client may go, and the broker stop, so each step ends in one of two places: go on, or abort(),
 * which gives back whatever there is.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/steal.h"
#include "broker/ahead.h"
#include "broker/check.h"
#include "broker/claims.h"
#include "broker/events.h"
#include "broker/internal.h"
#include "broker/life.h"
#include "broker/stocking.h"
#include "mem/commit.h"
#include "mem/pool.h"
#include "proto/methods.h"

/* A memfd whose inode number another buffer has is made again; twice in a row does not happen. */
#define ATTEMPTS_MAX 3

struct alloc {
    struct op_state state;
    struct waiter waiter;
    struct timer ending; /* for what was hurried while it waited */
    struct commit_job job;
    struct broker *broker;
    struct op *op;
    const struct alloc_args *args;
    struct opened *result;
    struct pool_choice choice;
    uint32_t chosen;
    struct pool *pool; /* the one of the choice that it is tried with */
    uint64_t session;
    bool pending; /* the verb has returned */
    bool tried;   /* it had room, and all stock was given back for it */
    int hurried;  /* the status to end with */
    int outcome;  /* of the last step */
    unsigned attempts;
    bool from_stock; /* they have their memory, and these descriptors, or -1 */
    int fds[MEMORYD_BATCH_MAX];
    uint32_t n; /* buffers that are there */
    struct buffer *buffers[MEMORYD_BATCH_MAX];
    struct commit commits[];
};

static struct problem *problem_of(struct alloc *alloc)
{
    return &alloc->op->problem;
}

/* ---- charging ------------------------------------------------------------------------------------------- */

static struct pool_request request_of(const struct alloc_args *args)
{
    return (struct pool_request){
        .pool = args->pool,
        .n_nodes = args->n_nodes,
        .nodes = args->nodes,
        .pages = args->pages,
        .page_size = args->page_size,
        .placement = args->placement,
        .part_size = args->part_size,
        .n_weights = args->n_weights,
        .weights = args->weights,
        .address = args->address,
        .divided = args->flags & BUFFER_NO_ADDRESS,
    };
}

static struct buffer_args args_of(const struct alloc *alloc, const struct session *session, uint32_t i)
{
    const struct alloc_args *args = alloc->args;

    return (struct buffer_args){
        .pool = alloc->pool,
        .plan = &alloc->commits[i].plan,
        .size = args->sizes[i],
        .flags = args->flags & (BUFFER_PUBLISHABLE | BUFFER_NO_ADDRESS),
        .alignment = args->alignment,
        .address = args->address,
        .account = session->account,
        .uid = session->record->uid,
        .pid = (pid_t)session->record->pid,
        .session = session->record->head.id,
    };
}

/* Whatever there is goes. Nothing of it was seen by anybody, except for descriptors in an unsent reply. */
static void abort_all(struct alloc *alloc)
{
    struct broker *broker = alloc->broker;

    for (uint32_t i = 0; i < alloc->n; i++) {
        struct buffer *buffer = alloc->buffers[i];
        struct commit *commit = &alloc->commits[i];

        if (alloc->from_stock) {
            alloc->fds[i] = fd_close(alloc->fds[i]);
            life_claim_gone(broker, buffer);
            continue;
        }
        /* so that a worker closes it, if it is large */
        if (commit->fd >= 0 && !buffer_set_memory(&broker->buffers, buffer, commit->fd, commit->dev, commit->ino,
                                                  commit->huge_bytes, commit->verified))
            (void)steal_fd(&commit->fd);
        commit_deinit(commit);
        if (record_is_live(&buffer->record->head))
            life_claim_gone(broker, buffer);
        else
            life_abort(broker, buffer);
    }
    alloc->n = 0;
}

static int check_name(struct alloc *alloc, const struct session *session, struct name_key *ret)
{
    int r;

    if (alloc->args->n != 1)
        return refuse(problem_of(alloc), STATUS_INVALID_ARGUMENT,
                      "a name is for one buffer; allocate that one alone");
    r = name_parse(alloc->args->name.name, session->record->uid, ret, problem_of(alloc));
    if (r)
        return r;
    if (ret->uid != session->record->uid)
        return refuse(problem_of(alloc), STATUS_NO_RIGHT,
                      "names of uid %u are theirs to bind; leave out \"uid:%u/\"", (unsigned)ret->uid,
                      (unsigned)ret->uid);
    if (names_find(&alloc->broker->names, ret))
        return refuse(problem_of(alloc), STATUS_NAME_EXISTS, "the name %s is bound already; unbind it first",
                      alloc->args->name.name);
    return 0;
}

/* All that is asked for, if it would fit once all is back that is on its way or in stock; else 0. */
static uint64_t bytes_that_fit_soon(const struct alloc *alloc)
{
    struct pool_request request = request_of(alloc->args);
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < alloc->args->n; i++) {
        uint64_t rounded;

        if (!pool_fits_soon(alloc->pool, &request, alloc->args->sizes[i]) ||
            !checked_align_up_u64(alloc->args->sizes[i], alloc->pool->granule, &rounded) ||
            !checked_add_u64(bytes, rounded, &bytes))
            return 0;
    }
    return bytes;
}

static bool is_one_size(const struct alloc_args *args)
{
    for (uint32_t i = 1; i < args->n; i++)
        if (args->sizes[i] != args->sizes[0])
            return false;
    return true;
}

/* All of them, or OP_PENDING: they have to be made. */
static int take_from_stock(struct alloc *alloc, struct session *session)
{
    const struct alloc_args *args = alloc->args;
    struct pool_request request = request_of(args);
    struct broker *broker = alloc->broker;
    struct stock_class *class = NULL;

    if (is_one_size(args))
        class = stocking_ask(broker, alloc->pool, &request, args->n, args->sizes[0], args->flags & BUFFER_PUBLISHABLE,
                             args->flags & BUFFER_WANT_FDS);
    if (!class)
        return OP_PENDING;
    alloc->from_stock = true;
    for (uint32_t i = 0; i < args->n; i++) {
        struct buffer_args user = args_of(alloc, session, i);
        struct stock_item item = stock_take(class);
        int r;

        check_crediting(broker, CHECK_BUFFER, item.buffer);
        r = buffer_take(&broker->buffers, item.buffer, &user, problem_of(alloc));
        check_charged(broker, CHECK_BUFFER, item.buffer);
        if (r) {
            problem_of(alloc)->item = i;
            stock_put(class, item);
            abort_all(alloc);
            alloc->from_stock = false;
            return r;
        }
        alloc->buffers[i] = item.buffer;
        alloc->fds[i] = item.fd;
        alloc->n = i + 1;
    }
    pressure_changed(broker);
    return 0;
}

/* All of the buffers, or none: those that are not from stock have no memory yet. */
static int acquire(struct alloc *alloc, struct session *session)
{
    const struct alloc_args *args = alloc->args;
    struct pool_request request = request_of(args);
    struct broker *broker = alloc->broker;
    struct name_key key;
    int r = 0;

    if (args->name.name[0])
        r = check_name(alloc, session, &key);
    if (r)
        return r;
    /* it asks once; who waits for room gets what there is then */
    r = alloc->pending ? OP_PENDING : take_from_stock(alloc, session);
    if (r != OP_PENDING)
        return r;
    for (uint32_t i = 0; i < args->n; i++) {
        struct buffer_args new = args_of(alloc, session, i);
        struct commit *commit = &alloc->commits[i];

        commit_init(commit);
        r = pool_plan(alloc->pool, &request, args->sizes[i], &commit->plan, problem_of(alloc));
        if (!r)
            r = buffer_new(&broker->buffers, &new, &alloc->buffers[i], problem_of(alloc));
        if (r) {
            problem_of(alloc)->item = i;
            abort_all(alloc);
            if (r == STATUS_POOL_FULL)
                stocking_give_way(broker, alloc->pool, bytes_that_fit_soon(alloc));
            return r;
        }
        alloc->n = i + 1;
        check_charged(broker, CHECK_BUFFER, alloc->buffers[i]);
    }
    pressure_changed(broker);
    return 0;
}

/* Would it be refused for another reason than room? Then it need not wait to learn it. */
static int check_sizes(struct alloc *alloc)
{
    struct pool_request request = request_of(alloc->args);

    for (uint32_t i = 0; i < alloc->args->n; i++) {
        struct plan plan;
        int r = pool_plan(alloc->pool, &request, alloc->args->sizes[i], &plan, problem_of(alloc));

        if (r && r != STATUS_POOL_FULL) {
            problem_of(alloc)->item = i;
            return r;
        }
    }
    return 0;
}

/*
 * From the first of the pools on that will do, without a word about those that would not: they were better, not needed.
 * Only for the last one it is worth waiting, so nobody overtakes those who wait for another.
 */
static int acquire_from(struct alloc *alloc, struct session *session, uint32_t first)
{
    struct waiters *waiters = &alloc->broker->waiters;
    uid_t uid = session->record->uid;
    int r;

    for (alloc->chosen = first;; alloc->chosen++) {
        bool last = alloc->chosen + 1 == alloc->choice.n;

        alloc->pool = alloc->choice.pools[alloc->chosen];
        if ((!last || alloc->args->wait_ms) && waiters_has(waiters, alloc->pool->index, uid)) {
            r = check_sizes(alloc);
            if (!r)
                r = STATUS_POOL_FULL;
        } else {
            r = acquire(alloc, session);
        }
        if (!r || last)
            return r;
        *problem_of(alloc) = (struct problem)PROBLEM_NULL;
    }
}

/* ---- finishing ------------------------------------------------------------------------------------------ */

static int refuse_hurried(struct alloc *alloc)
{
    switch (alloc->hurried) {
    case STATUS_TIMED_OUT:
        if (alloc->n)
            return refuse(problem_of(alloc), STATUS_TIMED_OUT,
                          "the request was given up while its memory was being committed");
        return refuse(problem_of(alloc), STATUS_TIMED_OUT,
                      "pool %s had no room within %llu ms; wait longer, or free something", alloc->pool->name,
                      (unsigned long long)alloc->args->wait_ms);
    case STATUS_SHUTTING_DOWN:
        return refuse(problem_of(alloc), STATUS_SHUTTING_DOWN, "the broker is stopping; try again in a moment");
    default:
        return refuse(problem_of(alloc), STATUS_STALE, "session %llu has ended meanwhile",
                      (unsigned long long)alloc->session);
    }
}

/* False: that one has to be made again. */
static bool take_memory(struct alloc *alloc, uint32_t *ret_again)
{
    for (uint32_t i = 0; i < alloc->n; i++) {
        struct commit *commit = &alloc->commits[i];

        if (alloc->buffers[i]->fd >= 0)
            continue; /* from the attempt before */
        if (buffer_set_memory(&alloc->broker->buffers, alloc->buffers[i], commit->fd, commit->dev, commit->ino,
                              commit->huge_bytes, commit->verified)) {
            *ret_again = i;
            return false;
        }
        (void)steal_fd(&commit->fd);
    }
    return true;
}

static int bind_name(struct alloc *alloc, struct session *session)
{
    const struct name_args *args = &alloc->args->name;
    struct name_new_args new = {
        .buffer = alloc->buffers[0],
        .account = session->account,
        .session = session->record->head.id,
        .in_session = &session->names,
        .policy = args->policy,
        .keep_ms = args->keep_ms,
        .group_rights = rights_complete(args->group_rights),
        .gid = args->gid,
        .other_rights = rights_complete(args->other_rights),
    };
    struct name *name;
    int r = name_parse(args->name, session->record->uid, &new.key, problem_of(alloc));

    return r ? r : claim_name(alloc->broker, &new, &name, problem_of(alloc));
}

static_assert(MEMORYD_BATCH_MAX <= KEEPER_BATCH_MAX, "a batch is one packet");

/* Another broker must find the memory of what is LIVE. OP_PENDING if the keeper is gone: then this one ends at once, it
 * answers nobody any more, and the next one does it from the beginning. */
static int hold_memory(struct alloc *alloc)
{
    uint64_t ids[MEMORYD_BATCH_MAX];
    int fds[MEMORYD_BATCH_MAX], r;

    for (uint32_t i = 0; i < alloc->n; i++) {
        ids[i] = alloc->buffers[i]->record->head.id;
        fds[i] = alloc->buffers[i]->fd;
    }
    r = keeper_hold_many(alloc->broker->options.keeper, KEEPER_BUFFER, alloc->n, ids, fds);
    if (r == -EPIPE)
        return OP_PENDING;
    if (r < 0)
        return refuse(problem_of(alloc), STATUS_NO_DESCRIPTORS,
                      "the keeper cannot hold the memory, so that a crash would lose it (%s); try again in a moment",
                      strerrordesc_np(-r));
    return 0;
}

/* What was opened ahead, if anything was. */
static int export_first(struct alloc *alloc, uint32_t i, int *ret_fd)
{
    struct broker *broker = alloc->broker;
    struct buffer *buffer = alloc->buffers[i];
    int r;

    if (!alloc->from_stock || alloc->fds[i] < 0)
        return buffer_export(broker, buffer, true, ret_fd, problem_of(alloc));
    r = buffer_watch(broker, buffer, problem_of(alloc));
    if (r)
        return r;
    buffer_add_flags(&broker->buffers, buffer, BUFFER_EXPORTED);
    *ret_fd = steal_fd(&alloc->fds[i]);
    return 0;
}

static int make_tokens(struct alloc *alloc, struct session *session)
{
    int r = 0;

    for (uint32_t i = 0; i < alloc->n && !r; i++)
        r = claim_plain_token(alloc->broker, session, alloc->buffers[i], alloc->result->items[i].token);
    return r;
}

/* The memory is there: from here on they are buffers like others, and end like others if something fails. */
static int become_live(struct alloc *alloc, struct session *session)
{
    struct broker *broker = alloc->broker;
    _cleanup_fdset_ struct fdset fds = FDSET_NULL;
    struct hold *hold;
    int r = 0;

    for (uint32_t i = 0; i < alloc->n && !r; i++) {
        if (!alloc->from_stock)
            buffer_commit(&broker->buffers, alloc->buffers[i]);
        r = claim_hold(broker, session, alloc->buffers[i], RIGHTS_ALL, &hold, problem_of(alloc));
        if (!r && alloc->args->flags & BUFFER_WANT_FDS) {
            int fd;

            r = export_first(alloc, i, &fd);
            if (!r)
                (void)fdset_push(&fds, fd);
        } else if (alloc->from_stock) {
            alloc->fds[i] = fd_close(alloc->fds[i]);
        }
        if (r)
            problem_of(alloc)->item = i;
        else
            opened_fill(&alloc->result->items[i], hold);
    }
    if (!r && alloc->args->flags & BUFFER_WANT_TOKENS)
        r = make_tokens(alloc, session);
    if (!r && alloc->args->name.name[0])
        r = bind_name(alloc, session);
    if (r) {
        fdset_deinit(&fds);
        for (uint32_t i = 0; i < alloc->n; i++)
            hold_free(session_hold(session, alloc->buffers[i]->record->head.id));
        return r;
    }
    alloc->result->n = alloc->n;
    for (uint32_t i = 0; i < alloc->n && alloc->args->flags & BUFFER_AHEAD; i++)
        ahead_begin(broker, alloc->buffers[i]);
    fdset_init(&alloc->result->fds);
    fdset_move(&alloc->result->fds, &fds);
    return 0;
}

static void hurry(struct op_state *state, int status);

static void begin_pending(struct alloc *alloc)
{
    if (alloc->pending)
        return;
    alloc->pending = true;
    pending_begin(&alloc->broker->pending, &alloc->state, alloc->op, hurry);
}

static int start_commit(struct alloc *alloc, uint32_t first, uint32_t n);
static int go_on_with(struct alloc *alloc, struct session *session, uint32_t choice);
static int wait_for_room(struct alloc *alloc);

/* It has room, but others have the memory or the descriptors: is it what is in stock? Then once more without that. */
static bool may_try_without_stock(struct alloc *alloc, int status)
{
    if (alloc->tried || (status != STATUS_NO_MEMORY && status != STATUS_NO_DESCRIPTORS) ||
        !stocking_give_all(alloc->broker))
        return false;
    alloc->tried = true;
    return true;
}

/* After the commit, on the loop. 0 or a status; OP_PENDING if it has to be done again. */
static int finish(struct alloc *alloc)
{
    struct session *session = find_session(alloc->broker, alloc->session);
    uint32_t first = (uint32_t)(alloc->job.commits - alloc->commits), again;
    int r = alloc->job.status;

    if (alloc->hurried || !session) {
        r = refuse_hurried(alloc);
    } else if (alloc->from_stock) {
        r = become_live(alloc, session);
        if (!r)
            return 0;
    } else if (r && alloc->chosen + 1 < alloc->choice.n) {
        abort_all(alloc);
        return go_on_with(alloc, session, alloc->chosen + 1);
    } else if (r && may_try_without_stock(alloc, r)) {
        abort_all(alloc);
        alloc->waiter.hoping = true;
        return wait_for_room(alloc);
    } else if (r) {
        *problem_of(alloc) = alloc->job.commits[alloc->job.failed].problem;
        problem_of(alloc)->item = first + alloc->job.failed;
    } else if (!take_memory(alloc, &again)) {
        if (++alloc->attempts < ATTEMPTS_MAX)
            return start_commit(alloc, again, 1);
        r = refuse(problem_of(alloc), STATUS_NO_MEMORY, "the kernel gave one inode number twice; try again");
    } else {
        r = hold_memory(alloc);
        if (!r)
            r = become_live(alloc, session);
        if (!r)
            return 0;
    }
    abort_all(alloc);
    if (r == OP_PENDING)
        begin_pending(alloc);
    return r;
}

static void end(struct alloc *alloc, int status)
{
    timer_disarm(&alloc->broker->timers, &alloc->ending);
    pending_end(&alloc->state, status);
    free(alloc);
}

static void committed(struct commit_job *job)
{
    struct alloc *alloc = job->userdata;
    int r = finish(alloc);

    if (r != OP_PENDING)
        end(alloc, r);
}

static void commit_begins(struct commit_job *job)
{
    struct alloc *alloc = job->userdata;

    once_working(alloc->op);
}

static void submit(struct op_state *state)
{
    struct alloc *alloc = container_of(state, struct alloc, state);

    commit_job_submit(&alloc->broker->jobs, &alloc->job);
}

/* 0 or a status if it was done at once, else OP_PENDING. */
static int start_commit(struct alloc *alloc, uint32_t first, uint32_t n)
{
    const struct pool *pool = alloc->pool;
    uint64_t bytes = 0;
    bool small = true;

    alloc->job = (struct commit_job){
        .n = n,
        .commits = &alloc->commits[first],
        .begins = commit_begins,
        .done = committed,
        .userdata = alloc,
    };
    if (alloc->from_stock)
        return finish(alloc);

    for (uint32_t i = first; i < first + n; i++) {
        struct commit *commit = &alloc->commits[i];

        commit_deinit(commit);
        commit->topology = alloc->broker->options.topology;
        commit->pages = pool->pages;
        commit->page_size = pool->page_size;
        commit->lazy = pool->lazy;
        commit->threads = alloc->broker->options.threads;
        commit->publishable = alloc->args->flags & BUFFER_PUBLISHABLE;
        (void)snprintf(commit->label, sizeof(commit->label), "memoryd-%llu",
                       (unsigned long long)alloc->buffers[i]->record->head.id);
        bytes += commit->plan.brief.bytes;
        small = small && commit_is_small(commit);
    }
    if (small && bytes <= COMMIT_INLINE_MAX) {
        (void)commit_job_run(&alloc->job);
        return finish(alloc);
    }
    begin_pending(alloc);
    once_work(&alloc->state, submit);
    return OP_PENDING;
}

/* ---- waiting for room ----------------------------------------------------------------------------------- */

static bool is_returning(const struct account *account)
{
    for (; account; account = account->parent)
        if (account->returning[ACCOUNT_BYTES] || account->returning[ACCOUNT_BUFFERS])
            return true;
    return false;
}

/*
 * It found no room, or a limit of bytes or buffers. But something is on its way back, and nothing says that it would
 * not do with that: a user who gives memory back and asks for as much gets it.
 */
static bool may_hope(const struct alloc *alloc, const struct session *session)
{
    uint64_t bytes;

    if (!pool_is_returning(alloc->pool) && !is_returning(session->account))
        return false;
    bytes = bytes_that_fit_soon(alloc);
    return bytes && bytes <= pool_available_soon(alloc->pool) &&
           bytes <= account_left(session->account, ACCOUNT_BYTES) &&
           alloc->args->n <= account_left(session->account, ACCOUNT_BUFFERS);
}

/* As long as the caller likes, or as there is hope. */
static bool may_wait(const struct alloc *alloc, const struct session *session, int status)
{
    if (status == STATUS_POOL_FULL && !alloc->waiter.hoping)
        return true;
    return (status == STATUS_POOL_FULL || status == STATUS_LIMIT) && may_hope(alloc, session);
}

static bool room_is_there(struct waiter *waiter)
{
    struct alloc *alloc = container_of(waiter, struct alloc, waiter);
    struct session *session = find_session(alloc->broker, alloc->session);

    if (!session) {
        alloc->outcome = refuse_hurried(alloc);
        return true;
    }
    *problem_of(alloc) = (struct problem)PROBLEM_NULL;
    alloc->outcome = acquire(alloc, session);
    if (may_wait(alloc, session, alloc->outcome))
        return false;
    if (alloc->outcome == STATUS_POOL_FULL && alloc->args->wait_ms) {
        alloc->hurried = STATUS_TIMED_OUT;
        alloc->outcome = refuse_hurried(alloc);
    }
    return true;
}

static void go_on(struct waiter *waiter)
{
    struct alloc *alloc = container_of(waiter, struct alloc, waiter);
    int r = alloc->outcome;

    if (!r) {
        op_executing(alloc->broker, alloc->session, alloc->op->sequence, METHOD_ALLOC);
        r = start_commit(alloc, 0, alloc->n);
        op_executing(alloc->broker, 0, 0, 0);
    }
    if (r != OP_PENDING)
        end(alloc, r);
}

static void waited_too_long(struct waiter *waiter)
{
    struct alloc *alloc = container_of(waiter, struct alloc, waiter);
    struct session *session = find_session(alloc->broker, alloc->session);

    if (session && may_hope(alloc, session)) {
        waiter->hoping = true;
        waiters_add(&alloc->broker->waiters, waiter, DEADLINE_NEVER);
        return;
    }
    alloc->hurried = STATUS_TIMED_OUT;
    end(alloc, refuse_hurried(alloc));
}

static void ending_turn(struct timer *timer)
{
    struct alloc *alloc = container_of(timer, struct alloc, ending);

    end(alloc, refuse_hurried(alloc));
}

static void hurry(struct op_state *state, int status)
{
    struct alloc *alloc = container_of(state, struct alloc, state);

    if (alloc->hurried)
        return;
    alloc->hurried = status;
    if (alloc->n) {
        for (uint32_t i = 0; i < alloc->n; i++)
            atomic_store(&alloc->commits[i].cancel, true);
    } else {
        waiters_remove(&alloc->broker->waiters, &alloc->waiter);
        timer_arm(&alloc->broker->timers, &alloc->ending, 0);
    }
}

static int wait_for_room(struct alloc *alloc)
{
    *problem_of(alloc) = (struct problem)PROBLEM_NULL;
    alloc->waiter.ready = room_is_there;
    alloc->waiter.go = go_on;
    alloc->waiter.expired = waited_too_long;
    begin_pending(alloc);
    waiters_add(&alloc->broker->waiters, &alloc->waiter,
                alloc->waiter.hoping ? DEADLINE_NEVER : deadline_after_ms(alloc->args->wait_ms));
    return OP_PENDING;
}

/* 0 or a status if it was done at once, else OP_PENDING. */
static int go_on_with(struct alloc *alloc, struct session *session, uint32_t choice)
{
    int r = acquire_from(alloc, session, choice);

    if (may_wait(alloc, session, r))
        return wait_for_room(alloc);
    return r ? r : start_commit(alloc, 0, alloc->n);
}

/* What is for later is nobody's hurry: from stock, at once and in the best pool, or not at all. */
static int go_ahead(struct alloc *alloc, struct session *session)
{
    int r = STATUS_POOL_FULL;

    alloc->pool = alloc->choice.pools[0];
    if (ahead_may_be(alloc->broker, session, alloc->pool, alloc->args))
        r = take_from_stock(alloc, session);
    if (!r)
        return start_commit(alloc, 0, alloc->n);
    if (r < 0)
        return r;
    *problem_of(alloc) = (struct problem)PROBLEM_NULL;
    alloc->result->n = 0;
    fdset_init(&alloc->result->fds);
    return 0;
}

/* ---- the verb ------------------------------------------------------------------------------------------- */

int op_alloc(struct op *op, const struct alloc_args *args, struct opened *result)
{
    struct broker *broker = op->broker;
    struct pool_request request = request_of(args);
    struct session *session;
    struct pool_choice choice;
    struct alloc *alloc;
    int r = op_session(op, &session);

    if (r)
        return r;
    if (!args->n || args->n > MEMORYD_BATCH_MAX)
        return refuse(&op->problem, STATUS_INVALID_ARGUMENT, "%u sizes; 1 to %d go into one request", args->n,
                      MEMORYD_BATCH_MAX);
    if (args->n > 1 && args->address)
        return refuse(&op->problem, STATUS_INVALID_ARGUMENT,
                      "an address is for one buffer; allocate that one alone");
    ahead_told(broker, session, &args->taken);
    r = pools_choose(broker->options.pools, &request, args->n, args->sizes, &choice, &op->problem);
    if (r)
        return r;
    alloc = calloc(1, sizeof(*alloc) + args->n * sizeof(struct commit));
    if (!alloc)
        return refuse(&op->problem, STATUS_NO_MEMORY, "the broker has no memory for one more request");
    alloc->broker = broker;
    alloc->op = op;
    alloc->args = args;
    alloc->result = result;
    alloc->choice = choice;
    alloc->session = op->session;
    alloc->ending = (struct timer)TIMER_INIT(ending_turn);
    waiter_init(&alloc->waiter, choice.pools[choice.n - 1]->index, session->record->uid);
    alloc->waiter.hoping = !args->wait_ms;

    r = args->flags & BUFFER_AHEAD ? go_ahead(alloc, session) : go_on_with(alloc, session, 0);
    if (r != OP_PENDING)
        free(alloc);
    return r;
}
