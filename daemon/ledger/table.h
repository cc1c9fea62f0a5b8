/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table: all records of one kind, and beside each record what the broker remembers of it in its own memory.
 *
 * That volatile part, the *object*, has the same slot as its record. It comes and goes with the record, so it needs no
 * allocation of its own, and a walk over the records meets the objects. Neither ever moves. An object begins with the
 * pointer to its record; in an indexed table a tree link follows, by which table_find() finds it by the record's id:
 *
 *     struct buffer { OBJECT(struct buffer_record); ... };      buffer->record->size
 *     struct hold { OBJECT_UNINDEXED(struct hold_record); ... };
 *
 * `record` is for reading. record_change() returns a pointer to write by, and saves the record in case the change does
 * not come to its end (ledger.h).
 *
 * A tree and not a hash table: it takes less memory for each, cannot fail, and its worst case is good.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/problem.h"
#include "base/tree.h"
#include "ledger/ledger.h"

struct object {
    struct record *head;
    RB_ENTRY(object) by_id;
};

#define OBJECT(type)          \
    union {                   \
        struct object object; \
        const type *record;   \
        type *writable;       \
    }
#define OBJECT_UNINDEXED(type) \
    union {                    \
        const type *record;    \
        type *writable;        \
    }

RB_HEAD(object_tree, object);

struct table;

/* Adds what the object costs now to sums that somebody makes (I5), or with sign -1 takes it off. */
typedef void table_audit_fn(void *userdata, const struct table *table, const void *object, int sign);

struct table {
    struct ledger *ledger; /* borrowed */
    enum record_kind kind;
    bool indexed;
    bool keeps_intents; /* of another broker: set before table_recover() */
    uint32_t record_size;
    uint32_t object_size;
    uint32_t per_extent;
    uint32_t n_extents;
    uint32_t *extents;      /* of the ledger */
    char **objects;         /* one array for each extent */
    uint64_t n_slots;       /* ever used */
    uint64_t free;          /* 1 + the first slot of the chain of free ones; 0 = none */
    uint64_t count;         /* records that are not free */
    uint64_t n_quarantined; /* besides */
    struct object_tree tree;
    table_audit_fn *audit; /* NULL: nobody adds up what its objects cost */
    void *audit_userdata;
};

#define TABLE_NULL ((struct table){.ledger = NULL})

/* The ledger is borrowed. */
void table_init(struct table *table, struct ledger *ledger, enum record_kind kind, size_t object_size, bool indexed);
/* Nothing may be in it any more. */
void table_deinit(struct table *table);

/* What a later broker makes of a record. */
enum table_verdict {
    TABLE_KEEP,
    TABLE_DROP,       /* not needed any more */
    TABLE_QUARANTINE, /* damaged */
};

/* Judges a record that is sound as far as a table can tell; its object is zeroed but for the pointer. Says in a few
 * words why a record goes into quarantine. */
typedef enum table_verdict table_recover_fn(void *userdata, void *object, const char **why);

/*
 * Takes over the records of an adopted ledger, after table_init(). INTENT ones are dropped, unless the table keeps
 * them. Each of the others is entered into the index, and then judged by `fn`; NULL keeps all. 0 or a negative errno.
 */
int table_recover(struct table *table, table_recover_fn *fn, void *userdata);
/* The next record in quarantine, from slot *cursor on, which is then behind it; NULL: that was the last. */
const struct record *table_next_quarantined(const struct table *table, uint64_t *cursor);

/* An INTENT record with a fresh id, zeroed, and its object, zeroed but for the pointer. 0 or NO_MEMORY. */
int table_alloc(struct table *table, void **ret_object, struct problem *problem);
/* The record is FREE, and slot and object are used again. */
void table_free(struct table *table, void *object);

/* The object of this id, INTENT or LIVE; NULL if there is none. Only of an indexed table. O(log n). */
void *table_find(const struct table *table, uint64_t id);

/* The same, and faster if the object is `near` or its neighbour by id, which suits a search in about the order in which
 * objects were made. `near` may be NULL. */
void *table_find_near(const struct table *table, void *near, uint64_t id);

/* The object of the lowest id, which is the oldest, INTENT or LIVE; NULL if there is none. Only of an indexed table. */
void *table_oldest(const struct table *table);

/*
 * The next object from slot *cursor on, INTENT or LIVE; *cursor is then behind it. Each slot looked at takes one
 * from *budget. NULL with *cursor 0: that was all. NULL with another *cursor: the budget is used up, go on there.
 * Records may come and go between calls; one that was there all the time is met exactly once. The first cursor
 * is 0.
 */
void *table_next(const struct table *table, uint64_t *cursor, unsigned *budget);

/* Where a walk meets this object: the walk has met it when the cursor is greater. */
uint64_t table_slot(const struct table *table, const void *object);

/* What an entry takes: the record and its object. */
static inline uint64_t table_entry_bytes(const struct table *table)
{
    return (uint64_t)table->record_size + table->object_size;
}

static inline uint64_t table_count(const struct table *table)
{
    return table->count;
}

/* Must be called around each change of what an object costs: for a new object only after, for one that goes only
 * before. */
static inline void audit_before(const struct table *table, const void *object)
{
    if (table->audit)
        table->audit(table->audit_userdata, table, object, -1);
}

static inline void audit_after(const struct table *table, const void *object)
{
    if (table->audit)
        table->audit(table->audit_userdata, table, object, 1);
}

static inline bool record_is_live(const struct record *record)
{
    return atomic_load_explicit(&record->state, memory_order_acquire) == RECORD_LIVE;
}

/* Saves the old image; for the macros below. */
void table_log(const struct table *table, const void *object);

/* Saves the record and returns a pointer to write by until the change ends. */
#define record_change(table, object_) (table_log((table), (object_)), (object_)->writable)
/* The same for what was allocated in this very change. */
#define record_fresh(object_) ((object_)->writable)

/* INTENT becomes LIVE. */
void record_commit(const struct table *table, void *object);
