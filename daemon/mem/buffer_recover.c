/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recovery of the buffers that another broker left. A record becomes a buffer again, and is charged, only if it makes
 * sense, its inode and its address are its own, and its memory exists and is as it was made.
 */
#include "base/cleanup.h"
#include "mem/buffer_index.h"

void buffers_recovered(struct buffers *buffers)
{
    struct plan_object *plan;
    unsigned budget = UINT32_MAX;
    uint64_t cursor = 0;

    while ((plan = table_next(&buffers->plans, &cursor, &budget)))
        if (!plan->found)
            table_free(&buffers->plans, plan);
}

static bool is_record_sound(const struct buffer_record *record, const struct pool *pool)
{
    return record->state >= BUFFER_LIVE && record->state <= BUFFER_STOCK && record->size && record->inode &&
           record->bytes >= record->size && record->bytes <= CHARGE_MAX && record->bytes % pool->granule == 0 &&
           record->granule_shift < 64 && UINT64_C(1) << record->granule_shift == pool->granule &&
           record->pages == pool->pages && !(record->flags & ~(uint32_t)BUFFER_FLAGS_ALL) && record->watch >= -1 &&
           record->placement > PLACEMENT_POOL && record->placement <= PLACEMENT_LOCAL && record->n_nodes &&
           record->n_nodes <= TOPOLOGY_NODES_MAX && record->node < TOPOLOGY_NODES_MAX;
}

/* The owner fits the state, and an unowned buffer has nothing that only a user can have given it. */
static bool is_owner_sound(const struct buffer_record *record)
{
    const uint32_t flags = BUFFER_PUBLISHABLE | BUFFER_VERIFIED | BUFFER_STRICT;

    if (record->charged_uid != (uid_t)-1)
        return record->state != BUFFER_STOCK;
    return (record->state == BUFFER_STOCK || record->state == BUFFER_ENDING) && !(record->flags & ~flags) &&
           record->n_nodes == 1 && !record->plan && !record->address && !record->reservation;
}

static bool is_foreign_sound(const struct buffer_record *record)
{
    const uint32_t flags = BUFFER_FOREIGN | BUFFER_NO_ADDRESS;

    return (record->state == BUFFER_LIVE || record->state == BUFFER_ENDING) && record->size && record->inode &&
           record->granule_shift < 64 && record->flags == flags && record->watch == -1 &&
           record->charged_uid != (uid_t)-1 && !record->bytes && !record->plan && !record->address &&
           !record->reservation && !record->n_nodes;
}

static bool is_plan_sound(const struct buffers *buffers, const struct buffer_record *record, struct plan_object **ret)
{
    struct plan_object *plan = record->plan ? table_find(&buffers->plans, record->plan) : NULL;
    uint64_t bytes = 0;

    *ret = plan;
    if (!record->plan)
        return record->n_nodes == 1;
    if (!plan || plan->found || (record->placement == PLACEMENT_INTERLEAVE && !plan->record->part_size))
        return false;
    for (unsigned i = 0; i < record->n_nodes; i++) {
        if (plan->record->node[i] >= TOPOLOGY_NODES_MAX || plan->record->bytes[i] > record->bytes - bytes)
            return false;
        bytes += plan->record->bytes[i];
    }
    return bytes == record->bytes;
}

/* Takes T, if it is the one that was adopted. Its maker may have changed its size meanwhile, even to 0. */
static bool find_foreign(struct buffer *buffer, const struct buffer_found *found)
{
    const struct buffer_record *record = buffer->record;
    struct handle_identity identity;

    if (!found->fd || *found->fd < 0)
        return record->state == BUFFER_ENDING;
    if (handle_identity(*found->fd, &identity) < 0 || identity.ino != record->inode ||
        (uint32_t)identity.dev != record->device)
        return false;
    buffer->fd = steal_fd(found->fd);
    return true;
}

/* Takes T. */
static bool find_memory(struct buffers *buffers, struct buffer *buffer, const struct buffer_found *found)
{
    const struct buffer_record *record = buffer->record;
    struct handle_identity identity = {
        .dev = record->device, .ino = record->inode, .uid = found->owner, .mode = 0600, .size = record->bytes};
    bool publishable = record->flags & BUFFER_PUBLISHABLE, published = false;
    const struct handle_probe *probe = found->probe;
    struct handle_probe own;

    if (buffer_is_foreign(buffer))
        return find_foreign(buffer, found);
    if (!found->fd || *found->fd < 0)
        return record->state == BUFFER_ENDING;
    if (!probe) {
        handle_probe(*found->fd, &own);
        probe = &own;
    }
    /* of one that is being emptied, record->bytes is what was not credited yet */
    if (record->state == BUFFER_ENDING && probe->identity.size > record->bytes)
        identity.size = probe->identity.size;
    if (!handle_is_ours(probe, &identity, publishable, &published) || (record->flags & BUFFER_PUBLISHED && !published))
        return false;
    buffer->fd = steal_fd(found->fd);
    return true;
}

/* Takes the address that it had; as its own if its reservation is gone. */
static bool find_home(struct buffers *buffers, struct buffer *buffer)
{
    const struct buffer_record *record = buffer->record;
    struct reservation *reservation = NULL;

    if (!record->address)
        return true;
    if (record->reservation)
        reservation = reservations_find(buffers->reservations, record->reservation);
    if (reservation)
        return !reservation_place(reservation, &buffer->home, record->address - reservation->record->address,
                                  record->bytes, buffer_granule(buffer), NULL);
    if (arena_take(buffers->arena, &buffer->home, record->bytes, buffer_granule(buffer), record->address, NULL))
        return false;
    if (record->reservation)
        record_change(&buffers->table, buffer)->reservation = 0;
    return true;
}

void buffer_recover_waste(struct buffers *buffers, struct buffer *buffer)
{
    unsigned note = (buffer->record->flags & BUFFER_HOME_WASTE) >> BUFFER_HOME_WASTE_SHIFT;

    if (buffer->charge.account && arena_extent_is_taken(&buffer->home) && !buffer->record->reservation)
        waste_restore_home(&buffers->reservations->wastes, &buffer->home, note, buffer->charge.account);
}

static void buffer_recharge(struct buffers *buffers, struct buffer *buffer, const struct buffer_found *found)
{
    const struct buffer_record *record = buffer->record;

    if (!buffer_is_unowned(buffer))
        charge_restore(&buffer->charge, found->account, ACCOUNT_BYTES, record->bytes);
    if (!buffer_is_foreign(buffer))
        buffer_shift(buffers, buffer, TALLY_NONE, buffer_tally_state(buffer));
    if (buffer_is_unowned(buffer)) {
        buffers->n_stock++;
        return;
    }
    buffers->bytes += record->bytes;
    /* taken by its session or not, it is that session's like any other from now on */
    if (record->flags & BUFFER_AHEAD)
        record_change(&buffers->table, buffer)->flags &= ~(uint32_t)BUFFER_AHEAD;
    if (record->charged_session != found->session)
        record_change(&buffers->table, buffer)->charged_session = found->session;
    buffer_count_state(buffers, record, 1);
}

/* Of itself and of its plan, which is NULL if it needs none. */
static bool is_recoverable(const struct buffers *buffers, const struct buffer *buffer, struct plan_object **ret_plan)
{
    const struct buffer_record *record = buffer->record;
    const struct pool *pool = buffer_pool(buffers, buffer);

    if (buffer_is_foreign(buffer))
        return is_foreign_sound(record);
    return pool && is_record_sound(record, pool) && is_owner_sound(record) && is_plan_sound(buffers, record, ret_plan);
}

/* Its home and its memory; neither if one of them is missing. */
static bool find_again(struct buffers *buffers, struct buffer *buffer, const struct buffer_found *found,
                       const char **why)
{
    *why = "its address belongs to another buffer, or is none";
    if (!find_home(buffers, buffer))
        return false;
    *why = "its memory is missing, or is not as it was made";
    if (find_memory(buffers, buffer, found))
        return true;
    buffer_leave_home(buffers, buffer);
    return false;
}

enum table_verdict buffer_recover(struct buffers *buffers, struct buffer *buffer, const struct buffer_found *found,
                                  const char **why)
{
    const struct buffer_record *record = buffer->record;
    struct plan_object *plan_object = NULL;
    bool foreign = buffer_is_foreign(buffer);
    struct buffer *near = found->near;

    buffer_init(buffer);
    *why = "its figures make no sense";
    if (!is_recoverable(buffers, buffer, &plan_object))
        return TABLE_QUARANTINE;
    *why = "another buffer has its memory";
    if (!foreign && buffer_index_inode(buffers, buffer, near && !buffer_is_foreign(near) ? near : NULL))
        return TABLE_QUARANTINE;
    if (!find_again(buffers, buffer, found, why)) {
        if (!foreign)
            buffer_unindex_inode(buffers, buffer);
        /* nobody loses anything, and the pages are gone or will be closed */
        return record->state == BUFFER_STOCK ? TABLE_DROP : TABLE_QUARANTINE;
    }
    if (plan_object)
        plan_object->found = true;
    buffer_recharge(buffers, buffer, found);
    /* of two with one watch neither can be believed; the caller asks for it again */
    if (record->watch >= 0 && buffer_index_watch(buffers, buffer, near && near->record->watch >= 0 ? near : NULL))
        record_change(&buffers->table, buffer)->watch = -1;
    return TABLE_KEEP;
}
