/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation: charged, placed, committed, recorded and held, or nothing at all.
 *
 * What is in stock is set aside, and the rest is made: small ones are committed here and now, larger ones by a worker.
 * What finds no room may wait for it, and does wait, asked or not, where memory that is on its way back may do. Between
 * any two of these steps the client may go, and the broker stop, so each step ends in one of two places: go on, or
 * batch_cut(), which gives back whatever there is.
 */
#include <stdlib.h>

#include "base/checked.h"
#include "base/clock.h"
#include "broker/batch.h"
#include "broker/claims.h"
#include "broker/events.h"
#include "broker/lookup.h"
#include "broker/once.h"
#include "broker/op_range.h"
#include "broker/state.h"
#include "broker/stocking.h"
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
    const struct alloc_spec *args;
    struct opened *result;
    struct pool_choice choice;
    uint32_t chosen;
    struct pool *pool; /* the one of the choice that it is tried with */
    uint32_t node;     /* where the latest buffer was to go */
    uint64_t session;
    uint64_t taking; /* what clients have cached is being taken for it: caches.h */
    bool pending; /* the verb has returned */
    bool tried;   /* it had room, and all stock and what was cached was given back for it */
    int hurried;  /* the status to end with */
    int outcome;  /* of the last step */
    unsigned attempts;
    struct batch batch;
};

static struct problem *problem_of(struct alloc *alloc)
{
    return &alloc->op->problem;
}

/* ---- charging ------------------------------------------------------------------------------------------- */

static struct pool_request request_of(const struct alloc_spec *args)
{
    return (struct pool_request){
        .pool = args->pool,
        .n_nodes = args->n_nodes,
        .nodes = args->nodes,
        .caller_node = args->caller_node,
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

static struct buffer_args args_of(const struct alloc *alloc, const struct session *session, uint64_t size)
{
    const struct alloc_spec *args = alloc->args;

    return (struct buffer_args){
        .pool = alloc->pool,
        .size = size,
        .flags = args->flags & (BUFFER_PUBLISHABLE | BUFFER_NO_ADDRESS),
        .alignment = args->alignment,
        .address = args->address,
        .account = session->account,
        .uid = session->record->uid,
        .pid = (pid_t)session->record->pid,
        .session = session->record->head.id,
    };
}

/* Could it be bound now? */
static int check_name(struct alloc *alloc, const struct session *session)
{
    const char *text = alloc->args->name.name;
    struct name_key key;
    int r;

    if (!text[0])
        return 0;
    if (alloc->args->n != 1)
        return refuse(problem_of(alloc), STATUS_INVALID_ARGUMENT,
                      "a name is for one buffer; allocate that one alone");
    r = name_parse(text, session->record->uid, &key, problem_of(alloc));
    if (r)
        return r;
    if (key.uid != session->record->uid)
        return refuse(problem_of(alloc), STATUS_NO_RIGHT,
                      "names of uid %u are theirs to bind; leave out \"uid:%u/\"", (unsigned)key.uid,
                      (unsigned)key.uid);
    if (names_find(&alloc->broker->names, &key))
        return refuse(problem_of(alloc), STATUS_NAME_EXISTS, "the name %s is bound already; unbind it first", text);
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

static bool is_one_size(const struct alloc_spec *args)
{
    for (uint32_t i = 1; i < args->n; i++)
        if (args->sizes[i] != args->sizes[0])
            return false;
    return true;
}

/* As many as there are. */
static int take_from_stock(struct alloc *alloc, struct session *session)
{
    const struct alloc_spec *args = alloc->args;
    struct pool_request request = request_of(args);
    struct buffer_args user = args_of(alloc, session, args->sizes[0]);

    if (!is_one_size(args))
        return 0;
    return stocking_take(&alloc->batch, args->n, &request, &user, args->flags & BUFFER_WANT_FDS, problem_of(alloc));
}

static int add(struct alloc *alloc, struct session *session, uint64_t size)
{
    struct pool_request request = request_of(alloc->args);
    struct buffer_args new = args_of(alloc, session, size);
    struct plan plan;
    /* what is in stock on its node gives way for it: it goes to no other one for that */
    int r = pool_plan_without_stock(alloc->pool, &request, size, &plan, problem_of(alloc));

    if (r)
        return r;
    new.plan = &plan;
    alloc->node = plan.brief.node;
    return batch_add(&alloc->batch, &new, problem_of(alloc));
}

/* All of the buffers, or none: those that are not from stock have no memory yet, and the others are still in stock. */
static int acquire(struct alloc *alloc, struct session *session)
{
    const struct alloc_spec *args = alloc->args;
    struct batch *batch = &alloc->batch;
    int r = check_name(alloc, session);

    if (r)
        return r;
    /* it asks once; who waits for room gets what there is then */
    if (!alloc->pending)
        r = take_from_stock(alloc, session);
    while (!r && batch->n < args->n)
        r = add(alloc, session, args->sizes[batch->n]);
    if (r) {
        problem_of(alloc)->item = batch->n;
        batch_cut(batch, 0);
        if (r == STATUS_POOL_FULL)
            stocking_give_way(alloc->broker, alloc->pool, alloc->node, bytes_that_fit_soon(alloc));
        return r;
    }
    pressure_changed(alloc->broker);
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
        if (alloc->batch.n)
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
    uint64_t ending = alloc->broker->buffers.n_ending;
    bool is_less;

    if (alloc->tried || (status != STATUS_NO_MEMORY && status != STATUS_NO_DESCRIPTORS))
        return false;
    is_less = stocking_give_all(alloc->broker);
    is_less |= caches_wanted(alloc->broker, &alloc->taking, CACHES_ALL);
    is_less |= alloc->broker->buffers.n_ending > ending;
    alloc->tried = is_less;
    return is_less;
}

/* They have their memory: from here on they are buffers like others, and end like others if something fails. */
static int become_live(struct alloc *alloc, struct session *session)
{
    struct buffer_args user = args_of(alloc, session, alloc->args->sizes[0]);
    struct batch *batch = &alloc->batch;
    int r = batch_commit(batch, &user, problem_of(alloc));

    if (batch->n_stock) {
        /* who counts on what is in stock may do so no longer */
        waiters_wake(&alloc->broker->waiters);
        pressure_changed(alloc->broker);
    }

    return r ? r : claim_batch(session, batch, alloc->args, alloc->result, problem_of(alloc));
}

/* After the commit, on the loop. 0 or a status; OP_PENDING if it has to be done again. */
static int finish(struct alloc *alloc)
{
    struct session *session = find_session(alloc->broker, alloc->session);
    struct batch *batch = &alloc->batch;
    uint32_t entered;
    int r = alloc->job.status;

    if (alloc->hurried || !session) {
        r = refuse_hurried(alloc);
    } else if (r && alloc->chosen + 1 < alloc->choice.n) {
        batch_cut(batch, 0);
        return go_on_with(alloc, session, alloc->chosen + 1);
    } else if (r && may_try_without_stock(alloc, r)) {
        batch_cut(batch, 0);
        alloc->waiter.hoping = true;
        return wait_for_room(alloc);
    } else if (r) {
        *problem_of(alloc) = alloc->job.commits[alloc->job.failed].problem;
        problem_of(alloc)->item = (uint32_t)(alloc->job.commits - batch->commits) + alloc->job.failed;
    } else if ((entered = batch_enter(batch)) < batch->n) {
        if (++alloc->attempts < ATTEMPTS_MAX)
            return start_commit(alloc, entered, 1);
        r = refuse(problem_of(alloc), STATUS_NO_MEMORY, "the kernel gave one inode number twice; try again");
    } else {
        r = become_live(alloc, session);
        if (!r)
            return 0;
    }
    batch_cut(batch, 0);
    if (r == OP_PENDING)
        begin_pending(alloc);
    return r;
}

static void alloc_free(struct alloc *alloc)
{
    batch_deinit(&alloc->batch);
    free(alloc);
}

static void end(struct alloc *alloc, int status)
{
    timer_disarm(&alloc->broker->timers, &alloc->ending);
    pending_end(&alloc->state, status);
    alloc_free(alloc);
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
    alloc->job = (struct commit_job){
        .n = n,
        .commits = &alloc->batch.commits[first],
        .begins = commit_begins,
        .done = committed,
        .userdata = alloc,
    };
    if (commit_job_is_small(&alloc->job)) {
        (void)commit_job_run(&alloc->job);
        return finish(alloc);
    }
    begin_pending(alloc);
    once_work(&alloc->state, submit);
    return OP_PENDING;
}

/* The same, with all of the batch that is not from stock. */
static int make(struct alloc *alloc)
{
    const struct batch *batch = &alloc->batch;

    alloc->job.status = 0;
    return batch->n > batch->n_stock ? start_commit(alloc, batch->n_stock, batch->n - batch->n_stock) : finish(alloc);
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

/* Does it want what is cached, and is that being taken? A limit is met by what the same user has. */
static bool is_taking(struct alloc *alloc, const struct session *session, int status)
{
    return (status == STATUS_POOL_FULL || status == STATUS_LIMIT) &&
           caches_wanted(alloc->broker, &alloc->taking, status == STATUS_LIMIT ? session->record->uid : CACHES_ALL);
}

/* As long as the caller likes, or as there is hope. */
static bool may_wait(struct alloc *alloc, const struct session *session, int status)
{
    if (is_taking(alloc, session, status))
        return true;
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
    if (!caches_are_taken(alloc->broker, alloc->taking))
        return false;
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
        r = make(alloc);
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
    if (alloc->batch.n) {
        batch_hurry(&alloc->batch);
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
    return r ? r : make(alloc);
}

/* ---- the verb ------------------------------------------------------------------------------------------- */

int op_alloc(struct op *op, const struct alloc_spec *args, struct opened *result)
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
    r = pools_choose(broker->options.pools, &request, args->n, args->sizes, &choice, &op->problem);
    if (r)
        return r;
    session_vacates(broker, session, args->address, args->address ? args->sizes[0] : 0);
    alloc = calloc(1, sizeof(*alloc));
    if (!alloc)
        return refuse(&op->problem, STATUS_NO_MEMORY, "the broker has no memory for one more request");
    alloc->broker = broker;
    alloc->op = op;
    alloc->args = args;
    alloc->result = result;
    alloc->choice = choice;
    alloc->session = op->session;
    batch_init(&alloc->batch, broker, args->n);
    alloc->ending = (struct timer)TIMER_INIT(ending_turn);
    waiter_init(&alloc->waiter, choice.pools[choice.n - 1]->index, session->record->uid);
    alloc->waiter.hoping = !args->wait_ms;

    r = go_on_with(alloc, session, 0);
    if (r != OP_PENDING)
        alloc_free(alloc);
    return r;
}
