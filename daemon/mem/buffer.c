/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers: what is taken for one is taken here, and given back here, in whatever state it is.
 */
#include "mem/buffer.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>

#include "base/align.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/probe.h"
#include "mem/buffer_index.h"
#include "proto/status.h"

static_assert(sizeof(((struct plan_record *)0)->bytes) == sizeof(((struct plan_nodes *)0)->bytes), "one layout");
static_assert(sizeof(((struct plan_record *)0)->node) == sizeof(((struct plan_nodes *)0)->node), "one layout");

static int compare_inodes(const struct buffer *a, const struct buffer *b)
{
    if (a->record->inode != b->record->inode)
        return a->record->inode < b->record->inode ? -1 : 1;
    return a->record->device < b->record->device ? -1 : a->record->device > b->record->device;
}

static int compare_watches(const struct buffer *a, const struct buffer *b)
{
    return a->record->watch < b->record->watch ? -1 : a->record->watch > b->record->watch;
}

TREE_GENERATE(buffer_inode_tree, buffer, by_inode, compare_inodes)
TREE_GENERATE(buffer_watch_tree, buffer, by_watch, compare_watches)

struct buffer *buffer_index_inode(struct buffers *buffers, struct buffer *buffer, struct buffer *near)
{
    return buffer_inode_tree_insert_near(&buffers->by_inode, buffer, near);
}

void buffer_unindex_inode(struct buffers *buffers, struct buffer *buffer)
{
    RB_REMOVE(buffer_inode_tree, &buffers->by_inode, buffer);
}

struct buffer *buffer_index_watch(struct buffers *buffers, struct buffer *buffer, struct buffer *near)
{
    return buffer_watch_tree_insert_near(&buffers->by_watch, buffer, near);
}

void buffers_init(struct buffers *buffers, struct ledger *ledger, struct pools *pools, struct arena *arena,
                  struct reservations *reservations)
{
    *buffers = (struct buffers){.pools = pools, .arena = arena, .reservations = reservations};
    RB_INIT(&buffers->by_inode);
    RB_INIT(&buffers->by_watch);
    table_init(&buffers->table, ledger, RECORD_BUFFER, sizeof(struct buffer), true);
    table_init(&buffers->plans, ledger, RECORD_PLAN, sizeof(struct plan_object), true);
}

void buffers_deinit(struct buffers *buffers)
{
    assert(!buffers->bytes && !buffers->n_detached && !buffers->n_ending);
    table_deinit(&buffers->table);
    table_deinit(&buffers->plans);
}

static int buffer_new_plan(struct buffers *buffers, struct buffer_record *record, const struct plan *plan,
                           struct problem *problem)
{
    struct plan_object *object;
    struct plan_record *table;
    void *p;
    int r;

    record->node = (uint8_t)plan->brief.node;
    record->n_nodes = (uint8_t)plan->brief.n_nodes;
    record->placement = plan->brief.placement;
    if (plan->brief.strict)
        record->flags |= BUFFER_STRICT;
    if (plan->brief.n_nodes <= 1)
        return 0;
    r = table_alloc(&buffers->plans, &p, problem);
    if (r)
        return r;
    object = p;
    table = record_fresh(object);
    table->part_size = plan->brief.part_size;
    memcpy(table->bytes, plan->nodes.bytes, sizeof(table->bytes));
    memcpy(table->node, plan->nodes.node, sizeof(table->node));
    record->plan = table->head.id;
    return 0;
}

static void buffer_note_waste(struct buffers *buffers, struct buffer *buffer)
{
    const struct charge *waste = waste_of_home(&buffers->reservations->wastes, &buffer->home);

    if (!waste)
        return;
    ledger_need(buffers->table.ledger, LEDGER_HOME_WASTE);
    record_fresh(buffer)->flags |= waste_note(waste->amount) << BUFFER_HOME_WASTE_SHIFT & BUFFER_HOME_WASTE;
}

static int buffer_take_home(struct buffers *buffers, struct buffer *buffer, const struct memory_spec *spec,
                            struct account *account, struct problem *problem)
{
    const struct pool *pool = buffer_pool(buffers, buffer);
    uint64_t alignment = spec->alignment > pool->granule ? spec->alignment : pool->granule;
    uint64_t bytes = buffer->record->bytes;
    int r;

    if (spec->flags & BUFFER_NO_ADDRESS)
        return 0;
    /* transparent huge pages are mapped as huge ones only where address and offset agree */
    if (!spec->address && pool->pages == PAGES_THP && bytes >= pool->page_size && alignment < pool->page_size)
        alignment = pool->page_size;
    r = arena_take(buffers->arena, &buffer->home, bytes, alignment, spec->address, problem);
    if (r)
        return r;
    r = waste_charge_home(&buffers->reservations->wastes, &buffer->home, bytes, account, problem);
    if (r)
        arena_give(buffers->arena, &buffer->home);
    else
        buffer_note_waste(buffers, buffer);
    return r;
}

/* All that costs something, in the order in which buffer_free() can tell what there is. A buffer that nobody pays for
 * (NULL) has neither a home, which users wish for, nor a plan of its own. */
static int buffer_acquire(struct buffers *buffers, struct buffer *buffer, const struct plan *plan,
                          const struct memory_spec *spec, struct account *account, struct problem *problem)
{
    struct buffer_record *record = record_fresh(buffer);
    uint64_t bytes = plan->brief.bytes;
    int r = 0;

    if (account)
        r = charge_init(&buffer->charge, account, ACCOUNT_BYTES, bytes, problem);
    if (r || !plan->pool)
        return r;
    r = buffer_new_plan(buffers, record, plan, problem);
    if (r)
        return r;
    r = pool_charge(plan->pool, plan, account, buffer_tally_state(buffer), problem);
    if (r)
        return r;
    record->bytes = bytes;
    if (!account) {
        assert(!record->plan);
        return 0;
    }
    buffers->bytes += bytes;
    r = buffer_take_home(buffers, buffer, spec, account, problem);
    if (r)
        return r;
    record->address = buffer->home.start;
    return 0;
}

void buffer_init(struct buffer *buffer)
{
    RB_INIT(&buffer->holds);
    list_init(&buffer->tokens);
    list_init(&buffer->names);
    buffer->fd = -1;
}

/* NULL: nobody's. */
static void buffer_set_owner(struct buffer_record *record, uint64_t size, const struct buffer_owner *owner)
{
    record->size = size;
    record->created_ms = clock_wall_ms();
    record->uid = owner ? owner->account->uid : (uid_t)-1;
    record->charged_uid = record->uid;
    record->charged_session = owner ? owner->session : 0;
    record->pid = owner ? (uint32_t)owner->pid : 0;
}

static void buffer_give_home(struct buffers *buffers, struct buffer *buffer)
{
    waste_credit_home(&buffers->reservations->wastes, &buffer->home);
    arena_give(buffers->arena, &buffer->home);
}

void buffer_leave_home(struct buffers *buffers, struct buffer *buffer)
{
    uint64_t reservation = buffer->record->reservation;

    if (reservation)
        reservation_unplace(table_find(&buffers->reservations->table, reservation), &buffer->home);
    else
        buffer_give_home(buffers, buffer);
}

void buffer_shift(struct buffers *buffers, const struct buffer *buffer, enum tally_state from, enum tally_state to)
{
    struct plan plan;

    buffer_plan(buffers, buffer, &plan);
    pool_shift(buffer_pool(buffers, buffer), &plan, buffer->charge.account, from, to);
}

/* The user who paid for a part of it does so no longer. What never was anybody's has not been charged for long. */
static void buffer_probe_credit(const struct buffer *buffer, uint64_t bytes)
{
    if (record_is_live(&buffer->record->head) && !buffer_is_unowned(buffer))
        PROBE(buffer_credit, buffer->record->head.id, bytes, buffer->record->charged_uid);
}

/* What buffer_acquire() took, as far as it got, and the object. */
static void buffer_dispose(struct buffers *buffers, struct buffer *buffer)
{
    const struct buffer_record *record = buffer->record;

    assert(!buffer->pins && !buffer->n_holds && !buffer->n_tokens && !buffer->n_names);
    assert(RB_EMPTY(&buffer->holds) && list_is_empty(&buffer->tokens) && list_is_empty(&buffer->names));

    buffer_probe_credit(buffer, record->bytes);
    buffer_set_watch(buffers, buffer, -1);
    if (record->inode && !buffer_is_foreign(buffer))
        buffer_unindex_inode(buffers, buffer);
    if (buffer_is_unowned(buffer))
        buffers->n_stock--;
    else
        buffer_count_state(buffers, record, -1);
    buffer_leave_home(buffers, buffer);
    if (record->bytes) {
        buffer_shift(buffers, buffer, buffer_tally_state(buffer), TALLY_NONE);
        buffers->bytes -= buffer_is_unowned(buffer) ? 0 : record->bytes;
    }
    if (record->plan)
        table_free(&buffers->plans, table_find(&buffers->plans, record->plan));
    charge_deinit(&buffer->charge);
    buffer->fd = fd_close(buffer->fd);
    table_free(&buffers->table, buffer);
}

int buffer_new(struct buffers *buffers, const struct plan *plan, const struct memory_spec *spec,
               const struct buffer_owner *owner, struct buffer **ret, struct problem *problem)
{
    const struct pool *pool = plan->pool;
    uint64_t granule = pool ? pool->granule : buffers->arena->page;
    struct buffer *buffer;
    struct buffer_record *record;
    void *object;
    int r;

    assert(is_power_of_two(granule));
    r = table_alloc(&buffers->table, &object, problem);
    if (r)
        return r;
    buffer = object;
    record = record_fresh(buffer);
    buffer_init(buffer);
    buffer_set_owner(record, plan->size, owner);
    if (buffer_is_unowned(buffer))
        buffers->n_stock++;
    record->flags = spec->flags & (BUFFER_PUBLISHABLE | BUFFER_NO_ADDRESS);
    record->watch = -1;
    record->state = BUFFER_COMMITTING;
    record->granule_shift = (uint8_t)__builtin_ctzll(granule);
    if (pool) {
        record->pool = pool->number;
        record->pages = (uint8_t)pool->pages;
        record->flags |= pool->committer == COMMITTER_NONE     ? BUFFER_LAZY
                         : pool->committer == COMMITTER_CLIENT ? BUFFER_CLIENT_CHARGED
                                                               : 0;
    } else {
        record->flags |= BUFFER_FOREIGN;
    }
    r = buffer_acquire(buffers, buffer, plan, spec, owner ? owner->account : NULL, problem);
    if (r) {
        buffer_dispose(buffers, buffer);
        return r;
    }
    audit_after(&buffers->table, buffer);
    *ret = buffer;
    return 0;
}

struct buffer *buffer_free(struct buffers *buffers, struct buffer *buffer)
{
    if (buffer) {
        audit_before(&buffers->table, buffer);
        buffer_dispose(buffers, buffer);
    }
    return NULL;
}

/* ---- as it lives ------------------------------------------------------------------------------------------------- */

int buffer_set_memory(struct buffers *buffers, struct buffer *buffer, int fd, const struct handle_identity *identity,
                      uint64_t huge_bytes, bool verified)
{
    struct buffer_record *record = record_change(&buffers->table, buffer);

    assert(!record->inode && buffer->fd < 0);
    record->inode = identity->ino;
    record->device = (uint32_t)identity->dev;
    if (!buffer_is_foreign(buffer) && buffer_index_inode(buffers, buffer, NULL)) {
        record->inode = 0;
        record->device = 0;
        return STATUS_BUSY;
    }
    record->huge_bytes = huge_bytes;
    if (verified)
        record->flags |= BUFFER_VERIFIED;
    buffer->fd = fd;
    return 0;
}

/* Somebody has it now. */
static void buffer_probe_alloc(const struct buffer *buffer)
{
    PROBE(buffer_alloc, buffer->record->head.id, buffer->record->bytes, buffer->record->charged_uid);
}

void buffer_commit(struct buffers *buffers, struct buffer *buffer)
{
    assert(buffer->record->state == BUFFER_COMMITTING);
    record_change(&buffers->table, buffer)->state = buffer_is_unowned(buffer) ? BUFFER_STOCK : BUFFER_LIVE;
    if (buffer->record->plan)
        record_commit(&buffers->plans, table_find(&buffers->plans, buffer->record->plan));
    record_commit(&buffers->table, buffer);
    if (!buffer_is_unowned(buffer))
        buffer_probe_alloc(buffer);
}

/* Only who pays is another one, or a first or last one; the pool has it as before. */
static void buffer_shift_payer(struct buffers *buffers, const struct buffer *buffer, enum tally_state from,
                               enum tally_state to)
{
    struct plan plan;

    if (buffer_is_foreign(buffer))
        return;
    buffer_plan(buffers, buffer, &plan);
    pool_shift_payer(buffer_pool(buffers, buffer), &plan, buffer->charge.account, from, to);
}

int buffer_earmark(struct buffers *buffers, struct buffer *buffer, const struct memory_spec *spec,
                   struct account *account, struct problem *problem)
{
    struct plan plan;
    int r;

    assert(buffer->record->state == BUFFER_STOCK);
    buffer_plan(buffers, buffer, &plan);
    r = pool_check_share(buffer_pool(buffers, buffer), &plan, account, problem);
    if (r)
        return r;
    audit_before(&buffers->table, buffer);
    r = charge_init(&buffer->charge, account, ACCOUNT_BYTES, buffer->record->bytes, problem);
    if (!r)
        r = buffer_take_home(buffers, buffer, spec, account, problem);
    if (r)
        charge_deinit(&buffer->charge);
    else
        buffer_shift_payer(buffers, buffer, TALLY_NONE, TALLY_STOCK);
    audit_after(&buffers->table, buffer);
    return r;
}

void buffer_unearmark(struct buffers *buffers, struct buffer *buffer)
{
    audit_before(&buffers->table, buffer);
    buffer_give_home(buffers, buffer);
    buffer_shift_payer(buffers, buffer, TALLY_STOCK, TALLY_NONE);
    charge_deinit(&buffer->charge);
    audit_after(&buffers->table, buffer);
}

void buffer_take(struct buffers *buffers, struct buffer *buffer, uint64_t size, const struct buffer_owner *owner)
{
    struct buffer_record *record = record_change(&buffers->table, buffer);

    assert(record->state == BUFFER_STOCK && buffer->charge.account);
    audit_before(&buffers->table, buffer);
    buffer_set_owner(record, size, owner);
    if (arena_extent_is_taken(&buffer->home))
        record->address = buffer->home.start;
    else
        record->flags |= BUFFER_NO_ADDRESS;
    record->state = BUFFER_LIVE;
    buffer_shift(buffers, buffer, TALLY_STOCK, TALLY_USED);
    buffers->n_stock--;
    buffers->bytes += record->bytes;
    audit_after(&buffers->table, buffer);
    buffer_probe_alloc(buffer);
}

/* Of those that only others may have, the ones that are ENDING count as detached. */
void buffer_count_state(struct buffers *buffers, const struct buffer_record *record, int by)
{
    if (record->detached_ms)
        buffers->n_detached += (uint64_t)by;
    else if (record->state == BUFFER_ENDING)
        buffers->n_ending += (uint64_t)by;
}

static void buffer_enter_state(struct buffers *buffers, struct buffer *buffer, enum buffer_state state,
                               bool others_may_have)
{
    struct buffer_record *record = record_change(&buffers->table, buffer);

    if (!buffer_is_unowned(buffer))
        buffer_count_state(buffers, record, -1);
    record->state = (uint8_t)state;
    if (!others_may_have)
        record->detached_ms = 0;
    else if (!record->detached_ms)
        record->detached_ms = clock_wall_ms();
    if (!buffer_is_unowned(buffer))
        buffer_count_state(buffers, record, 1);
}

void buffer_set_state(struct buffers *buffers, struct buffer *buffer, enum buffer_state state)
{
    buffer_enter_state(buffers, buffer, state, state == BUFFER_DETACHED);
}

void buffer_set_unproven(struct buffers *buffers, struct buffer *buffer)
{
    buffer_enter_state(buffers, buffer, BUFFER_ENDING, true);
}

uint32_t buffer_flags(const struct buffer *buffer)
{
    uint32_t flags = buffer->record->flags & BUFFER_FLAGS_ON_WIRE, seals;

    if (flags & BUFFER_CLIENT_CHARGED && buffer->record->pages == PAGES_THP)
        flags |= BUFFER_WANTS_THP;
    if ((flags & (BUFFER_PUBLISHABLE | BUFFER_PUBLISHED)) != BUFFER_PUBLISHABLE)
        return flags;
    seals = buffer_seals(buffer);
    if (seals & F_SEAL_WRITE)
        flags |= BUFFER_PUBLISHED;
    else if (seals & F_SEAL_FUTURE_WRITE)
        flags |= BUFFER_PUBLISHED | BUFFER_PUBLISHED_FUTURE_ONLY;
    return flags;
}

void buffer_set_reclaiming(struct buffers *buffers, struct buffer *buffer, bool reclaiming)
{
    enum tally_state from = (enum tally_state)buffer->charge.state, to = reclaiming ? TALLY_RECLAIMING : TALLY_USED;

    assert(buffer->record->state == BUFFER_ENDING);
    if (buffer_is_unowned(buffer) || from == to)
        return;
    audit_before(&buffers->table, buffer);
    if (!buffer_is_foreign(buffer))
        buffer_shift(buffers, buffer, from, to);
    charge_shift(&buffer->charge, to);
    audit_after(&buffers->table, buffer);
}

void buffer_lower(struct buffers *buffers, struct buffer *buffer, uint64_t by)
{
    struct buffer_record *record = record_change(&buffers->table, buffer);

    assert(record->state == BUFFER_ENDING && !record->plan && record->bytes > by);
    audit_before(&buffers->table, buffer);
    record->bytes -= by;
    if (record->size > record->bytes)
        record->size = record->bytes;
    buffers->bytes -= by;
    pool_lower(buffer_pool(buffers, buffer), record->node, buffer->charge.account, buffer_tally_state(buffer), by);
    charge_lower(&buffer->charge, by);
    buffer_probe_credit(buffer, by);
    audit_after(&buffers->table, buffer);
}

void buffer_set_node(struct buffers *buffers, struct buffer *buffer, struct pool *pool, uint32_t node,
                     uint64_t huge_bytes)
{
    struct buffer_record *record = record_change(&buffers->table, buffer);

    assert(pool->pages == (enum pages)record->pages && pool->granule == buffer_granule(buffer));
    audit_before(&buffers->table, buffer);
    buffer_shift(buffers, buffer, buffer_tally_state(buffer), TALLY_NONE);
    if (record->plan)
        table_free(&buffers->plans, table_find(&buffers->plans, record->plan));
    record->plan = 0;
    record->pool = pool->number;
    record->node = (uint8_t)node;
    record->n_nodes = 1;
    record->placement = PLACEMENT_BIND;
    record->flags |= BUFFER_STRICT;
    record->huge_bytes = huge_bytes;
    buffer_shift(buffers, buffer, TALLY_NONE, buffer_tally_state(buffer));
    audit_after(&buffers->table, buffer);
}

void buffer_set_watch(struct buffers *buffers, struct buffer *buffer, int wd)
{
    struct buffer *other;

    if (buffer->record->watch >= 0)
        RB_REMOVE(buffer_watch_tree, &buffers->by_watch, buffer);
    if (buffer->record->watch != wd)
        record_change(&buffers->table, buffer)->watch = wd;
    if (wd < 0)
        return;
    /* the kernel gives a number again only when its watch has ended, so any other buffer with it is out of date */
    while ((other = buffer_index_watch(buffers, buffer, NULL)))
        buffer_set_watch(buffers, other, -1);
}

int buffer_place(struct buffers *buffers, struct buffer *buffer, struct reservation *reservation, uint64_t offset,
                 struct problem *problem)
{
    struct buffer_record *record = record_change(&buffers->table, buffer);
    int r;

    assert(!record->address);
    r = reservation_place(reservation, &buffer->home, offset, record->bytes, buffer_granule(buffer), problem);
    if (r)
        return r;
    record->reservation = reservation->record->head.id;
    record->address = buffer->home.start;
    return 0;
}

void buffer_charge_to(struct buffers *buffers, struct buffer *buffer, struct account *account, uint64_t session)
{
    struct buffer_record *record = record_change(&buffers->table, buffer);
    enum tally_state state = buffer_tally_state(buffer);

    audit_before(&buffers->table, buffer);
    if (account_user(buffer->charge.account) != account_user(account)) {
        buffer_shift_payer(buffers, buffer, state, TALLY_NONE);
        charge_move(&buffer->charge, account);
        buffer_shift_payer(buffers, buffer, TALLY_NONE, state);
    } else {
        charge_move(&buffer->charge, account);
    }
    record->charged_uid = account->uid;
    record->charged_session = session;
    audit_after(&buffers->table, buffer);
}

void buffer_add_flags(struct buffers *buffers, struct buffer *buffer, uint32_t flags)
{
    if (~buffer->record->flags & flags)
        record_change(&buffers->table, buffer)->flags |= flags;
}

void buffer_remove_flags(struct buffers *buffers, struct buffer *buffer, uint32_t flags)
{
    if (buffer->record->flags & flags)
        record_change(&buffers->table, buffer)->flags &= ~flags;
}

struct pool *buffer_pool(const struct buffers *buffers, const struct buffer *buffer)
{
    return buffer_is_foreign(buffer) ? NULL : pools_numbered(buffers->pools, buffer->record->pool);
}

void buffer_plan(const struct buffers *buffers, const struct buffer *buffer, struct plan *ret)
{
    const struct buffer_record *record = buffer->record;
    struct plan_brief brief = {
        .bytes = record->bytes,
        .n_nodes = record->n_nodes,
        .node = record->node,
        .placement = record->placement,
        .strict = !!(record->flags & BUFFER_STRICT),
    };
    struct plan_nodes nodes = {.node = {0}};

    if (record->plan) {
        const struct plan_object *plan = table_find(&buffers->plans, record->plan);

        brief.part_size = plan->record->part_size;
        memcpy(nodes.bytes, plan->record->bytes, sizeof(nodes.bytes));
        memcpy(nodes.node, plan->record->node, sizeof(nodes.node));
    }
    plan_unpack(ret, &brief, &nodes);
    ret->pool = buffer_pool(buffers, buffer);
    ret->size = record->size;
}

struct buffer *buffers_find(const struct buffers *buffers, uint64_t id)
{
    return buffers_find_near(buffers, NULL, id);
}

struct buffer *buffers_find_near(const struct buffers *buffers, struct buffer *near, uint64_t id)
{
    struct buffer *buffer = table_find_near(&buffers->table, near, id);

    return buffer && record_is_live(&buffer->record->head) && !buffer_is_unowned(buffer) ? buffer : NULL;
}

struct buffer *buffers_by_inode(const struct buffers *buffers, dev_t device, ino_t inode)
{
    for (struct buffer *buffer = RB_ROOT(&buffers->by_inode); buffer;) {
        const struct buffer_record *record = buffer->record;

        if (inode == record->inode && device == record->device)
            return record_is_live(&record->head) && !buffer_is_unowned(buffer) ? buffer : NULL;
        if (inode < record->inode || (inode == record->inode && device < record->device))
            buffer = RB_LEFT(buffer, by_inode);
        else
            buffer = RB_RIGHT(buffer, by_inode);
    }
    return NULL;
}

struct buffer *buffers_by_watch(const struct buffers *buffers, int wd)
{
    const struct buffer_record wanted = {.watch = wd};
    struct buffer key = {.record = &wanted};

    return RB_FIND(buffer_watch_tree, (struct buffer_watch_tree *)&buffers->by_watch, &key);
}
