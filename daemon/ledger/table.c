/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables: slots of one kind, in the ledger's extents, with the objects beside them.
 *
 * Free slots make a chain through the ids of their records, which mean nothing while a record is FREE; whoever
 * finds a ledger without its broker sees the states and makes the chain anew. The slot freed last is used first,
 * so what is in use stays together.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "ledger/table.h"
#include "proto/status.h"

static int compare_ids(const struct object *a, const struct object *b)
{
    return a->head->id < b->head->id ? -1 : a->head->id > b->head->id;
}

TREE_GENERATE(object_tree, object, by_id, compare_ids)

void table_init(struct table *table, struct ledger *ledger, enum record_kind kind, size_t object_size, bool indexed)
{
    assert(object_size % sizeof(void *) == 0);
    assert(object_size >= (indexed ? sizeof(struct object) : sizeof(void *)));
    *table = (struct table){
        .ledger = ledger,
        .kind = kind,
        .indexed = indexed,
        .record_size = ledger_record_size(kind),
        .object_size = (uint32_t)object_size,
        .per_extent = (uint32_t)(LEDGER_EXTENT_SIZE / ledger_record_size(kind)),
    };
    RB_INIT(&table->tree);
}

void table_deinit(struct table *table)
{
    assert(!table->count);
    for (uint32_t i = 0; i < table->n_extents; i++)
        free(table->objects[i]);
    free(table->objects);
    free(table->extents);
    *table = (struct table)TABLE_NULL;
}

static struct record *record_at(const struct table *table, uint64_t slot)
{
    char *extent = ledger_extent(table->ledger, table->extents[slot / table->per_extent]);

    return (struct record *)(void *)(extent + slot % table->per_extent * table->record_size);
}

static void *object_at(const struct table *table, uint64_t slot)
{
    return table->objects[slot / table->per_extent] + slot % table->per_extent * table->object_size;
}

/* Both begin with it, whatever its declared type. */
static struct record *record_of(const void *object)
{
    struct record *record;

    memcpy(&record, object, sizeof(record));
    return record;
}

/* Extents come in ascending order, so the search is short. */
static uint64_t slot_of(const struct table *table, const struct record *record)
{
    uint32_t extent = ledger_extent_of(table->ledger, record);
    uint32_t low = 0, high = table->n_extents;
    const char *start;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if (table->extents[middle] <= extent)
            low = middle;
        else
            high = middle;
    }
    assert(table->extents[low] == extent);
    start = ledger_extent(table->ledger, extent);
    return (uint64_t)low * table->per_extent + (uint64_t)((const char *)record - start) / table->record_size;
}

static int no_memory(struct problem *problem)
{
    return refuse(problem, STATUS_NO_MEMORY, "the broker has no memory to remember more; try again later");
}

/* Room for one extent more. What is got before a failure stays for the next attempt or is given back at once. */
static int grow(struct table *table, struct problem *problem)
{
    uint32_t n = table->n_extents, *extents;
    char **arrays, *objects;
    int r;

    /* powers of two */
    if (!(n & (n - 1))) {
        size_t room = n ? 2 * (size_t)n : 1;

        extents = reallocarray(table->extents, room, sizeof(*extents));
        if (!extents)
            return no_memory(problem);
        table->extents = extents;
        arrays = reallocarray(table->objects, room, sizeof(*arrays));
        if (!arrays)
            return no_memory(problem);
        table->objects = arrays;
    }
    objects = calloc(table->per_extent, table->object_size);
    if (!objects)
        return no_memory(problem);
    r = ledger_take_extent(table->ledger, table->kind, &table->extents[n], problem);
    if (r) {
        free(objects);
        return r;
    }
    table->objects[n] = objects;
    table->n_extents = n + 1;
    return 0;
}

int table_alloc(struct table *table, void **ret_object, struct problem *problem)
{
    struct record *record;
    uint64_t slot;
    void *object;
    int r;

    if (table->free) {
        slot = table->free - 1;
        record = record_at(table, slot);
        assert(record->state == RECORD_FREE);
        table->free = record->id;
    } else {
        if (table->n_slots == (uint64_t)table->n_extents * table->per_extent) {
            r = grow(table, problem);
            if (r)
                return r;
        }
        slot = table->n_slots++;
        record = record_at(table, slot);
    }
    memset((char *)record + sizeof(*record), 0, table->record_size - sizeof(*record));
    record->kind = table->kind;
    record->id = ledger_take_id(table->ledger);
    atomic_store_explicit(&record->state, RECORD_INTENT, memory_order_release);

    object = object_at(table, slot);
    memset(object, 0, table->object_size);
    memcpy(object, &record, sizeof(record));
    if (table->indexed)
        RB_INSERT(object_tree, &table->tree, (struct object *)object);
    table->count++;
    *ret_object = object;
    return 0;
}

void table_free(struct table *table, void *object)
{
    struct record *record = record_of(object);

    assert(record->kind == table->kind && record->state != RECORD_FREE);
    if (table->indexed)
        RB_REMOVE(object_tree, &table->tree, (struct object *)object);
    table->count--;
    atomic_store_explicit(&record->state, RECORD_FREE, memory_order_release);
    record->id = table->free;
    table->free = slot_of(table, record) + 1;
}

void *table_find(const struct table *table, uint64_t id)
{
    struct object *object = RB_ROOT(&table->tree);

    assert(table->indexed);
    while (object) {
        if (id == object->head->id)
            return object;
        object = id < object->head->id ? RB_LEFT(object, by_id) : RB_RIGHT(object, by_id);
    }
    return NULL;
}

uint64_t table_slot(const struct table *table, const void *object)
{
    return slot_of(table, record_of(object));
}

void *table_next(const struct table *table, uint64_t *cursor, unsigned *budget)
{
    for (uint64_t slot = *cursor; slot < table->n_slots; slot++) {
        if (!*budget) {
            *cursor = slot;
            return NULL;
        }
        --*budget;
        if (record_at(table, slot)->state != RECORD_FREE) {
            *cursor = slot + 1;
            return object_at(table, slot);
        }
    }
    *cursor = 0;
    return NULL;
}
