/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables: slots of one kind, in the ledger's extents, with the objects beside them.
 *
 * Free slots make a chain through the ids of their records, which mean nothing else while a record is FREE. The next
 * broker goes by the states alone, and makes the chain anew. The slot freed last is used first, so that what is in use
 * stays together.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ledger/table.h"
#include "log/log.h"
#include "proto/status.h"
#include "sys/sys.h"

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

/*
 * The objects beside an extent: whole pages, zeroed. The heap would put a header of its own before so many bytes, and
 * where they fill their pages, as those of buffers do, take one page more for that.
 */
static char *new_objects(const struct table *table)
{
    void *objects = sys->mmap(NULL, (size_t)table->per_extent * table->object_size, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return objects == MAP_FAILED ? NULL : objects;
}

static void free_objects(const struct table *table, char *objects)
{
    (void)sys->munmap(objects, (size_t)table->per_extent * table->object_size);
}

void table_deinit(struct table *table)
{
    assert(!table->count);
    for (uint32_t i = 0; i < table->n_extents; i++)
        free_objects(table, table->objects[i]);
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

/* Every object begins with the pointer to its record. */
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

/* Makes room for one extent more, and its objects. On failure what was allocated stays for the next attempt. */
static int table_prepare_extent(struct table *table, char **ret_objects, struct problem *problem)
{
    uint32_t n = table->n_extents, *extents;
    char **arrays, *objects;

    /* powers of two */
    if (!(n & (n - 1))) {
        size_t capacity = n ? 2 * (size_t)n : 1;

        extents = reallocarray(table->extents, capacity, sizeof(*extents));
        if (!extents)
            return no_memory(problem);
        table->extents = extents;
        arrays = reallocarray(table->objects, capacity, sizeof(*arrays));
        if (!arrays)
            return no_memory(problem);
        table->objects = arrays;
    }
    objects = new_objects(table);
    if (!objects)
        return no_memory(problem);
    *ret_objects = objects;
    return 0;
}

static void add_extent(struct table *table, uint32_t extent, char *objects)
{
    table->extents[table->n_extents] = extent;
    table->objects[table->n_extents++] = objects;
}

static int table_grow(struct table *table, struct problem *problem)
{
    uint32_t extent;
    char *objects;
    int r = table_prepare_extent(table, &objects, problem);

    if (r)
        return r;
    r = ledger_take_extent(table->ledger, table->kind, &extent, problem);
    if (r) {
        free_objects(table, objects);
        return r;
    }
    add_extent(table, extent, objects);
    return 0;
}

static void *bind_object(const struct table *table, uint64_t slot, struct record *record)
{
    void *object = object_at(table, slot);

    memset(object, 0, table->object_size);
    memcpy(object, &record, sizeof(record));
    return object;
}

static void free_slot(struct table *table, uint64_t slot, struct record *record)
{
    atomic_store_explicit(&record->state, RECORD_FREE, memory_order_release);
    record->id = table->free;
    table->free = slot + 1;
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
            r = table_grow(table, problem);
            if (r)
                return r;
        }
        slot = table->n_slots++;
        record = record_at(table, slot);
    }
    /* only the head is saved, since the rest of a free record means nothing */
    ledger_log(table->ledger, record, sizeof(*record));
    memset((char *)record + sizeof(*record), 0, table->record_size - sizeof(*record));
    record->kind = table->kind;
    record->id = ledger_take_id(table->ledger);
    atomic_store_explicit(&record->state, RECORD_INTENT, memory_order_release);

    object = bind_object(table, slot, record);
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
    ledger_log(table->ledger, record, table->record_size);
    free_slot(table, slot_of(table, record), record);
}

void table_log(const struct table *table, const void *object)
{
    ledger_log(table->ledger, record_of(object), table->record_size);
}

void record_commit(const struct table *table, void *object)
{
    struct record *record = record_of(object);

    ledger_log(table->ledger, record, sizeof(*record));
    atomic_store_explicit(&record->state, RECORD_LIVE, memory_order_release);
}

/* ---- after another broker ---------------------------------------------------------------------------------------- */

static void table_quarantine(struct table *table, struct record *record, const char *why)
{
    static const char *const kinds[RECORD_KINDS] = {
        [RECORD_SESSION] = "session",
        [RECORD_BUFFER] = "buffer",
        [RECORD_PLAN] = "plan",
        [RECORD_HOLD] = "hold",
        [RECORD_TOKEN] = "token",
        [RECORD_NAME] = "name",
        [RECORD_RESERVATION] = "reservation",
        [RECORD_POOL] = "pool",
        [RECORD_KEPT] = "reply",
        [RECORD_KEPT_MORE] = "reply's rest",
        [RECORD_ENDED_TOKEN] = "ended token",
    };

    if (record->state != RECORD_QUARANTINED)
        log_error("the ledger's record of %s %llu is damaged and is left alone: %s", kinds[table->kind],
                  (unsigned long long)record->id, why);
    atomic_store_explicit(&record->state, RECORD_QUARANTINED, memory_order_release);
    table->n_quarantined++;
}

static const char *what_is_wrong(const struct table *table, const struct record *record)
{
    if (record->state != RECORD_INTENT && record->state != RECORD_LIVE)
        return record->state == RECORD_QUARANTINED ? "as found before" : "it is in no state that there is";
    if (record->kind != table->kind)
        return "it is of another kind";
    if (!ledger_id_was_given(table->ledger, record->id))
        return "its id was never given out";
    return NULL;
}

static bool is_mostly_used(const struct table *table, uint32_t n)
{
    uint32_t used = 0;

    for (uint32_t i = 0; i < table->per_extent; i++)
        used += record_at(table, (uint64_t)n * table->per_extent + i)->state != RECORD_FREE;
    return used > table->per_extent / 2;
}

/* Touches all objects at once if most are about to be written: page by page it would take several times as long. */
static void populate_objects(const struct table *table, uint32_t n)
{
    if (is_mostly_used(table, n))
        (void)sys_populate(table->objects[n], (size_t)table->per_extent * table->object_size);
}

/* `near` is the object in the index that was recovered last, or NULL. Returns the last one again, after this slot. */
static struct object *recover_slot(struct table *table, uint64_t slot, table_recover_fn *fn, void *userdata,
                                   struct object *near)
{
    struct record *record = record_at(table, slot);
    const char *why = what_is_wrong(table, record);
    void *object;

    if (record->state == RECORD_FREE) {
        free_slot(table, slot, record);
        return near;
    }
    object = bind_object(table, slot, record);
    if (!why && table->indexed && object_tree_insert_near(&table->tree, object, near))
        why = "another one has its id";
    if (why) {
        table_quarantine(table, record, why);
        return near;
    }
    table->count++;
    if (record->state == RECORD_INTENT && !table->keeps_intents) {
        table_free(table, object);
        return near;
    }
    why = "it contradicts what else there is";
    switch (fn ? fn(userdata, object, &why) : TABLE_KEEP) {
    case TABLE_KEEP:
        return table->indexed ? object : NULL;
    case TABLE_DROP:
        table_free(table, object);
        break;
    case TABLE_QUARANTINE:
        if (table->indexed)
            RB_REMOVE(object_tree, &table->tree, (struct object *)object);
        table->count--;
        table_quarantine(table, record, why);
        break;
    }
    return near;
}

int table_recover(struct table *table, table_recover_fn *fn, void *userdata)
{
    struct object *near = NULL;
    uint32_t extent = 0;
    char *objects;

    while ((extent = ledger_next_extent(table->ledger, table->kind, extent))) {
        if (table_prepare_extent(table, &objects, NULL))
            return -ENOMEM;
        add_extent(table, extent++, objects);
    }
    table->n_slots = (uint64_t)table->n_extents * table->per_extent;
    /* from the last to the first, so that the first free one is used first */
    for (uint64_t slot = table->n_slots; slot-- > 0;) {
        if (slot % table->per_extent == table->per_extent - 1)
            populate_objects(table, (uint32_t)(slot / table->per_extent));
        near = recover_slot(table, slot, fn, userdata, near);
    }
    ledger_commit(table->ledger);
    return 0;
}

const struct record *table_next_quarantined(const struct table *table, uint64_t *cursor)
{
    while (table->n_quarantined && *cursor < table->n_slots) {
        const struct record *record = record_at(table, (*cursor)++);

        if (record->state == RECORD_QUARANTINED)
            return record;
    }
    return NULL;
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

void *table_find_near(const struct table *table, void *near, uint64_t id)
{
    struct object *object = near;

    if (object && object->head->id != id)
        object = id < object->head->id ? RB_PREV(object_tree, &table->tree, object)
                                       : RB_NEXT(object_tree, &table->tree, object);
    return object && object->head->id == id ? object : table_find(table, id);
}

void *table_oldest(const struct table *table)
{
    struct object *object = RB_ROOT(&table->tree);

    assert(table->indexed);
    while (object && RB_LEFT(object, by_id))
        object = RB_LEFT(object, by_id);
    return object;
}

uint64_t table_slot(const struct table *table, const void *object)
{
    return slot_of(table, record_of(object));
}

void *table_next(const struct table *table, uint64_t *cursor, unsigned *budget)
{
    for (uint64_t slot = *cursor; slot < table->n_slots; slot++) {
        const struct record *record = record_at(table, slot);

        if (!*budget) {
            *cursor = slot;
            return NULL;
        }
        --*budget;
        if (record->state == RECORD_INTENT || record->state == RECORD_LIVE) {
            *cursor = slot + 1;
            return object_at(table, slot);
        }
    }
    *cursor = 0;
    return NULL;
}
