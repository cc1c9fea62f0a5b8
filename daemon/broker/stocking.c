/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See stocking.h. One timer looks at all bins, of which there are few: in the idle gap after a burst, when a period of
 * a bin ends, and once a second as long as there is any stock, since other programs may make memory short.
 */
#include "broker/stocking.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "broker/batch.h"
#include "broker/export.h"
#include "broker/lifecycle.h"
#include "broker/state.h"
#include "log/log.h"
#include "mem/stock.h"
#include "sys/sys.h"

/* The most that one job makes: buffers and bytes, which one turn of the loop takes in. */
#define REFILL_MAX   8
#define REFILL_BYTES (UINT64_C(4) << 20)
/* A machine is short of memory if less than this, or less than a 64th of all, is available. */
#define SHORT_OF_MEMORY (UINT64_C(256) << 20)
#define SHORT_OF_PART   64
#define LOOK_NS         NSEC_PER_SEC
/* The pause after a request found no room, or no more could be made. */
#define RETRY_DELAY_NS NSEC_PER_SEC

struct stocking {
    struct stock stock;
    struct broker *broker;
    struct timer turn;
    struct list refills; /* running */
    uint64_t retry_at;
    uint64_t looked_at;
    uint64_t descriptors; /* the most that the broker may have */
    uint64_t reserve;     /* if less memory is available all stock goes; if less than twice that, none is made */
    bool stopped;
};

struct refill {
    struct stock_job job;
    struct list link;
    struct stocking *stocking;
    struct stock_bin *bin;
    struct batch batch;
};

/* ---- giving back ------------------------------------------------------------------------------------------------- */

static void stocking_drop(struct broker *broker, struct stock_item item)
{
    item.fd = fd_close(item.fd);
    lifecycle_abort(broker, item.buffer);
}

static void stocking_give_back(struct stocking *stocking, struct stock_bin *bin, uint32_t n)
{
    while (n-- && bin->n)
        stocking_drop(stocking->broker, stock_take(bin));
}

static void stop_refills(struct stocking *stocking, const struct stock_bin *bin)
{
    list_for_each_entry(refill, &stocking->refills, struct refill, link) {
        if (bin && refill->bin != bin)
            continue;
        atomic_store(&refill->job.stop, true);
        batch_cancel(&refill->batch);
        (void)job_withdraw(&refill->job.job);
    }
}

static void stocking_empty(struct stocking *stocking, struct stock_bin *bin)
{
    stock_lower(bin, 0);
    stop_refills(stocking, bin);
    stocking_give_back(stocking, bin, bin->n);
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

/* The pool is under pressure, which is from 85 % on (events.c: pressure_level()). */
static bool is_nearly_full(const struct broker *broker, const struct pool *pool)
{
    return broker->pressure[pool->index] > 0;
}

/* A buffer in stock has two descriptors. Half of all are left, since a quarter may be in flight to clients. */
static bool has_descriptors(const struct stocking *stocking, uint32_t more)
{
    const struct broker *broker = stocking->broker;
    uint64_t stock = broker->buffers.n_stock + more;
    uint64_t others =
        table_count(&broker->buffers.table) - broker->buffers.n_stock + 3 * table_count(&broker->sessions.table);

    return stock <= stocking->descriptors / 16 && others + 2 * stock <= stocking->descriptors / 2;
}

static bool may_have(const struct stocking *stocking, const struct stock_key *key, uint32_t more)
{
    return !is_nearly_full(stocking->broker, key->pool) && has_descriptors(stocking, more) &&
           key->pool->bytes.in[TALLY_STOCK] + more * key->bytes <= pool_most_stock(key->pool);
}

/* ---- refilling --------------------------------------------------------------------------------------------------- */

static void stocking_schedule(struct stocking *stocking, uint64_t at)
{
    if (!stocking->stopped && at < stocking->turn.at)
        timer_arm(&stocking->broker->timers, &stocking->turn, at);
}

static void stocking_refilled(struct job *done)
{
    struct refill *refill = container_of(done, struct refill, job.job);
    struct stock_job *job = &refill->job;
    struct stocking *stocking = refill->stocking;
    struct broker *broker = stocking->broker;
    struct batch *batch = &refill->batch;
    uint64_t now = clock_now_ns();
    uint32_t made = atomic_load(&job->stop) ? 0 : job->made;

    list_remove(&refill->link);
    refill->bin->coming -= batch->n;
    if (made < batch->n)
        stocking->retry_at = deadline_at(now, RETRY_DELAY_NS);
    batch_cut(batch, made);
    batch_cut(batch, batch_enter(batch));
    if (batch->n)
        ledger_need(broker->ledger, LEDGER_STOCK);
    if (batch_hold(batch, NULL))
        batch_cut(batch, 0);
    else
        batch_commit(batch, NULL, NULL);
    for (uint32_t i = 0; i < batch->n; i++) {
        /* if it cannot be watched now, it is when a descriptor leaves */
        (void)buffer_watch(broker, batch->buffers[i], NULL);
        stock_put(refill->bin, (struct stock_item){.buffer = batch->buffers[i], .fd = batch->fds[i]});
    }
    batch_deinit(batch);
    free(refill);
    waiters_wake(&broker->waiters);
    stocking_schedule(stocking, 0);
}

static bool stocking_add(struct batch *batch, const struct stock_key *key)
{
    const struct plan_brief brief = {
        .bytes = key->bytes, .n_nodes = 1, .node = key->node, .placement = key->placement, .strict = key->strict};
    const struct memory_spec spec = {.flags = key->publishable ? BUFFER_PUBLISHABLE : 0};
    struct plan plan;

    plan_unpack(&plan, &brief, NULL);
    plan.pool = key->pool;
    plan.size = key->bytes;
    return !batch_add(batch, &plan, &spec, NULL, NULL);
}

static void stocking_refill(struct stocking *stocking, struct stock_bin *bin, uint32_t n)
{
    uint64_t fit = REFILL_BYTES / bin->key.bytes;
    uint32_t urgent = stock_urgent(bin);
    struct refill *refill;
    struct batch *batch;

    if (urgent && urgent < n)
        n = urgent;
    n = n < REFILL_MAX ? n : REFILL_MAX;
    n = n < fit ? n : fit ? (uint32_t)fit : 1;
    while (n && !may_have(stocking, &bin->key, n))
        n--;
    refill = n ? calloc(1, sizeof(*refill)) : NULL;
    if (!refill)
        return;
    refill->stocking = stocking;
    refill->bin = bin;
    batch = &refill->batch;
    batch_init(batch, stocking->broker, n);
    while (batch->n < n && stocking_add(batch, &bin->key))
        continue;
    if (!batch->n) {
        batch_deinit(batch);
        free(refill);
        return;
    }
    refill->job.n = batch->n;
    refill->job.commits = batch->commits;
    refill->job.urgent = urgent;
    refill->job.reserve = 2 * stocking->reserve;
    refill->job.fds = stock_wants_fds(bin) ? batch->fds : NULL;
    refill->job.job.done = stocking_refilled;
    bin->coming += batch->n;
    list_init(&refill->link);
    list_append(&stocking->refills, &refill->link);
    stock_job_submit(&stocking->broker->jobs, &refill->job);
}

/* ---- looking ----------------------------------------------------------------------------------------------------- */

/* Returns when to look at it again. */
static uint64_t stocking_look_at(struct stocking *stocking, struct stock_bin *bin, uint64_t now)
{
    uint64_t again;
    uint32_t n;

    stocking_give_back(stocking, bin, stock_surplus(bin, now));
    if (!bin->key.bytes)
        return DEADLINE_NEVER;
    if (bin->n && is_nearly_full(stocking->broker, bin->key.pool))
        stocking_empty(stocking, bin);
    n = stock_wanted(bin, now, &again);
    if (n && !stocking->broker->waiters.waiting && now >= stocking->retry_at)
        stocking_refill(stocking, bin, n);
    if (n && now < stocking->retry_at && stocking->retry_at < again)
        again = stocking->retry_at;
    return again;
}

static void stocking_turn(struct timer *timer)
{
    struct stocking *stocking = container_of(timer, struct stocking, turn);
    struct broker *broker = stocking->broker;
    uint64_t now = clock_now_ns(), next = DEADLINE_NEVER;
    bool any = false;

    if (now - stocking->looked_at >= LOOK_NS) {
        stocking->looked_at = now;
        if (broker->buffers.n_stock && (sys->available(-1) < stocking->reserve || !has_descriptors(stocking, 0)))
            (void)stocking_drain(broker);
    }
    for (unsigned i = 0; i < STOCK_BINS; i++) {
        struct stock_bin *bin = &stocking->stock.bins[i];
        uint64_t again;

        if (!bin->key.bytes)
            continue;
        again = stocking_look_at(stocking, bin, now);
        next = again < next ? again : next;
        any = any || bin->key.bytes;
    }
    if (any && deadline_at(now, LOOK_NS) < next)
        next = deadline_at(now, LOOK_NS);
    stocking_schedule(stocking, next);
}

void stocking_look(struct broker *broker)
{
    if (broker->stocking)
        stocking_schedule(broker->stocking, 0);
}

/* ---- taking ------------------------------------------------------------------------------------------------------ */

/* NULL: all bins are in use. */
static struct stock_bin *stocking_bin(struct stocking *stocking, const struct stock_key *key, uint64_t now)
{
    struct stock_bin *bin = stock_find(&stocking->stock, key);

    return bin ? bin : stock_add(&stocking->stock, key, now);
}

static bool is_one_size(const struct alloc_spec *spec)
{
    for (uint32_t i = 1; i < spec->n; i++)
        if (spec->sizes[i] != spec->sizes[0])
            return false;
    return true;
}

int stocking_take(struct batch *batch, struct pool *pool, const struct alloc_spec *spec,
                  const struct buffer_owner *owner, struct problem *problem)
{
    const struct memory_spec *memory = &spec->memory;
    const struct pool_view view = {.taken = TALLY_RECLAIMING, .payer = owner->account};
    struct stocking *stocking = batch->broker->stocking;
    struct stock_bin *bin;
    struct stock_key key;
    uint64_t now, again;
    struct plan plan;
    int r = 0;

    if (!stocking || !pool_most_stock(pool) || !is_one_size(spec) ||
        pool_plan(pool, memory, spec->sizes[0], view, &plan, NULL) ||
        !stock_key_of(pool, &plan.brief, memory->flags & BUFFER_PUBLISHABLE, &key))
        return 0;
    now = clock_now_ns();
    bin = stocking_bin(stocking, &key, now);
    if (!bin)
        return 0;
    stock_asked(bin, spec->n, bin->n >= spec->n, memory->flags & BUFFER_WANT_FDS, now);
    while (batch->n < spec->n && bin->n && !r) {
        struct stock_item item = stock_take(bin);

        r = batch_add_stock(batch, item.buffer, item.fd, memory, owner->account, problem);
        if (r)
            stock_put(bin, item);
    }
    if (bin->target)
        stocking_schedule(stocking, stock_wanted(bin, now, &again) ? 0 : again);
    return r;
}

uint64_t stocking_ready(const struct broker *broker, const struct pool *pool)
{
    const struct stocking *stocking = broker->stocking;
    uint64_t bytes = 0;

    for (unsigned i = 0; stocking && i < STOCK_BINS; i++) {
        const struct stock_bin *bin = &stocking->stock.bins[i];

        if (bin->key.bytes && bin->key.pool == pool)
            bytes += bin->n * bin->key.bytes;
    }
    return bytes;
}

/* ---- giving way -------------------------------------------------------------------------------------------------- */

/* Could the pool give out the memory of this bin? */
static bool is_in_the_way(const struct stock_bin *bin, const struct pool *pool)
{
    const struct stock_key *key = &bin->key;

    return key->bytes &&
           (key->pool == pool || (key->pool->budget_index == pool->budget_index && pool_has_node(pool, key->node)));
}

/* Stock on this node shrinks first, and then stock that was not asked for the longest. */
static bool shrinks_before(const struct stock_bin *bin, const struct stock_bin *other, uint32_t node)
{
    bool here = bin->key.node == node, other_here = other->key.node == node;

    return here != other_here ? here : bin->asked_at < other->asked_at;
}

static struct stock_bin *next_in_the_way(struct stocking *stocking, const struct pool *pool, uint32_t node)
{
    struct stock_bin *found = NULL;

    for (unsigned i = 0; i < STOCK_BINS; i++) {
        struct stock_bin *bin = &stocking->stock.bins[i];

        if ((bin->n || bin->target) && is_in_the_way(bin, pool) && (!found || shrinks_before(bin, found, node)))
            found = bin;
    }
    return found;
}

void stocking_shrink(struct broker *broker, const struct pool *pool, uint32_t node, uint64_t bytes)
{
    struct stocking *stocking = broker->stocking;
    struct stock_bin *bin;

    if (!stocking)
        return;
    stocking->retry_at = deadline_after_ns(RETRY_DELAY_NS);
    while (bytes && (bin = next_in_the_way(stocking, pool, node))) {
        uint64_t enough = bytes / bin->key.bytes + (bytes % bin->key.bytes != 0);
        uint32_t n = enough < bin->n ? (uint32_t)enough : bin->n;
        uint64_t given = n * bin->key.bytes;

        stop_refills(stocking, bin);
        stocking_give_back(stocking, bin, n);
        stock_lower(bin, bin->n);
        bytes -= given < bytes ? given : bytes;
    }
}

bool stocking_drain(struct broker *broker)
{
    struct stocking *stocking = broker->stocking;

    if (!stocking || !broker->buffers.n_stock)
        return false;
    stocking->retry_at = deadline_after_ns(RETRY_DELAY_NS);
    for (unsigned i = 0; i < STOCK_BINS; i++)
        if (stocking->stock.bins[i].key.bytes)
            stocking_empty(stocking, &stocking->stock.bins[i]);
    return true;
}

/* ---- beginning and end ------------------------------------------------------------------------------------------- */

static bool any_may_have_stock(struct pools *pools)
{
    for (uint32_t i = 0; i < pools_count(pools); i++) {
        const struct pool *pool = pools_get(pools, i);

        if (pool->most_stock.bytes || pool->most_stock.percent)
            return true;
    }
    return false;
}

static uint64_t reserve_of(const struct topology *topology)
{
    uint64_t total = 0;

    for (uint32_t i = 0; i < topology->n_nodes; i++)
        total += topology->nodes[i].total;
    return total / SHORT_OF_PART > SHORT_OF_MEMORY ? total / SHORT_OF_PART : SHORT_OF_MEMORY;
}

int stocking_init(struct broker *broker)
{
    struct stocking *stocking;
    struct rlimit limit;

    if (!any_may_have_stock(broker->options.pools))
        return 0;
    stocking = calloc(1, sizeof(*stocking));
    if (!stocking)
        return fatal(-ENOMEM);
    stocking->broker = broker;
    stocking->turn = (struct timer)TIMER_INIT(stocking_turn);
    stocking->descriptors = getrlimit(RLIMIT_NOFILE, &limit) < 0 ? 0 : limit.rlim_cur;
    stocking->reserve = reserve_of(broker->options.topology);
    list_init(&stocking->refills);
    broker->stocking = stocking;
    return 0;
}

void stocking_stop(struct broker *broker)
{
    struct stocking *stocking = broker->stocking;

    if (!stocking)
        return;
    stocking->stopped = true;
    timer_disarm(&broker->timers, &stocking->turn);
    stop_refills(stocking, NULL);
}

void stocking_deinit(struct broker *broker)
{
    struct stocking *stocking = broker->stocking;

    if (!stocking)
        return;
    assert(stocking->stopped && list_is_empty(&stocking->refills));
    for (unsigned i = 0; i < STOCK_BINS; i++) {
        struct stock_bin *bin = &stocking->stock.bins[i];

        while (bin->n)
            (void)fd_close(stock_take(bin).fd);
    }
    free(stocking);
    broker->stocking = NULL;
}

/* The bin of a buffer in stock. NULL: the bin is full, or the pool has no such stock any more. */
static struct stock_bin *bin_of(struct stocking *stocking, const struct buffer *buffer, uint64_t now)
{
    struct buffers *buffers = &stocking->broker->buffers;
    struct stock_bin *bin;
    struct stock_key key;
    struct plan plan;

    buffer_plan(buffers, buffer, &plan);
    if (!stock_key_of(buffer_pool(buffers, buffer), &plan.brief, buffer->record->flags & BUFFER_PUBLISHABLE, &key))
        return NULL;
    bin = stocking_bin(stocking, &key, now);
    return bin && bin->n < stock_most(&key) ? bin : NULL;
}

void stocking_put(struct broker *broker, struct buffer *buffer, int fd)
{
    struct stocking *stocking = broker->stocking;
    struct stock_bin *bin = bin_of(stocking, buffer, clock_now_ns());
    struct stock_item item = {.buffer = buffer, .fd = fd};

    /* not while anybody waits: it may be the room that they wait for */
    if (bin && bin->n + bin->coming < bin->target && !broker->waiters.waiting)
        stock_put(bin, item);
    else
        stocking_drop(broker, item);
}

void stocking_restore(struct broker *broker)
{
    struct stocking *stocking = broker->stocking;
    unsigned budget = UINT32_MAX;
    uint64_t now = clock_now_ns(), cursor = 0;
    struct buffer *buffer;

    while (broker->buffers.n_stock && (buffer = table_next(&broker->buffers.table, &cursor, &budget))) {
        struct stock_item item = {.buffer = buffer, .fd = -1};
        struct stock_bin *bin;

        if (buffer->record->state != BUFFER_STOCK)
            continue;
        bin = stocking ? bin_of(stocking, buffer, now) : NULL;
        if (!bin) {
            stocking_drop(broker, item);
            continue;
        }
        stock_put(bin, item);
        bin->target = bin->n;
        bin->least = bin->n;
    }
    stocking_look(broker);
}
