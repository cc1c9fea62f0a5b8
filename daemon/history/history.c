/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See the header. Beside the records there is an index in memory, made anew by each broker: a tree of all by serial,
 * and for each user a list from the oldest to the latest.
 */
#include "history/history.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/tree.h"
#include "log/log.h"
#include "sys/sys.h"

#define HISTORY_MAGIC UINT64_C(0x7473696868656d6d) /* "mmehhist" */
#define HISTORY_MAJOR 1
/* Of the latest of a user so many are compared with what happens. */
#define REPEATS_MAX 8

struct history_file {
    uint64_t magic;
    uint32_t major;
    uint32_t record_size;
    uint32_t n_records;
    uint32_t unused[11];
    struct history_record records[HISTORY_RECORDS];
};

static_assert(sizeof(struct history_record) == 552, "layout");
static_assert(offsetof(struct history_file, records) == 64, "layout");

/* Of one record. */
struct history_slot {
    RB_ENTRY(history_slot) by_serial;
    struct list in_user; /* or in the list of free ones */
    struct history_user *user;
    uint64_t serial;
};

RB_HEAD(history_tree, history_slot);

struct history_user {
    RB_ENTRY(history_user) by_uid;
    uint32_t uid;
    uint32_t n;
    struct list slots; /* the oldest first */
};

RB_HEAD(history_users, history_user);

struct history {
    int fd;
    struct history_file *file;
    uint64_t next_serial;
    struct history_tree tree;
    struct history_users users;
    uint32_t n_users;
    struct list free;
    struct history_slot slots[HISTORY_RECORDS];
};

static int compare_serials(const struct history_slot *a, const struct history_slot *b)
{
    return a->serial < b->serial ? -1 : a->serial > b->serial;
}

static int compare_uids(const struct history_user *a, const struct history_user *b)
{
    return a->uid < b->uid ? -1 : a->uid > b->uid;
}

TREE_GENERATE(history_tree, history_slot, by_serial, compare_serials)
TREE_GENERATE(history_users, history_user, by_uid, compare_uids)

static uint32_t slot_index(const struct history *history, const struct history_slot *slot)
{
    return (uint32_t)(slot - history->slots);
}

static struct history_record *slot_record(const struct history *history, const struct history_slot *slot)
{
    return &history->file->records[slot_index(history, slot)];
}

/* ---- users ------------------------------------------------------------------------------------------------------- */

static struct history_user *user_find(struct history *history, uint32_t uid)
{
    struct history_user key = {.uid = uid};

    return RB_FIND(history_users, &history->users, &key);
}

/* NULL without memory. */
static struct history_user *user_get(struct history *history, uint32_t uid)
{
    struct history_user *user = user_find(history, uid);

    if (user)
        return user;
    user = calloc(1, sizeof(*user));
    if (!user)
        return NULL;
    user->uid = uid;
    list_init(&user->slots);
    RB_INSERT(history_users, &history->users, user);
    history->n_users++;
    return user;
}

/* It is forgotten with its last record. */
static void user_put(struct history *history, struct history_user *user)
{
    if (user->n)
        return;
    RB_REMOVE(history_users, &history->users, user);
    history->n_users--;
    free(user);
}

static struct history_user *user_with_most(struct history *history)
{
    struct history_user *user, *most = NULL;

    RB_FOREACH(user, history_users, &history->users)
        if (!most || user->n > most->n)
            most = user;
    return most;
}

/* ---- slots ------------------------------------------------------------------------------------------------------- */

/* It becomes the latest of this user's. */
static void slot_enter(struct history *history, struct history_slot *slot, struct history_user *user, uint64_t serial)
{
    slot->user = user;
    slot->serial = serial;
    user->n++;
    list_append(&user->slots, &slot->in_user);
    RB_INSERT(history_tree, &history->tree, slot);
}

static void slot_leave(struct history *history, struct history_slot *slot)
{
    slot->user->n--;
    list_remove(&slot->in_user);
    RB_REMOVE(history_tree, &history->tree, slot);
}

/* For a new record of this user: a free one, or the oldest of who has too many. */
static struct history_slot *slot_take(struct history *history, struct history_user *user)
{
    struct list *link = list_pop(&history->free);
    struct history_user *loser = user;
    struct history_slot *slot;

    if (link)
        return container_of(link, struct history_slot, in_user);
    if (!user->n || user->n < HISTORY_RECORDS / history->n_users)
        loser = user_with_most(history);
    slot = container_of(list_first(&loser->slots), struct history_slot, in_user);
    slot_leave(history, slot);
    atomic_store_explicit(&slot_record(history, slot)->serial, 0, memory_order_release);
    if (loser != user)
        user_put(history, loser);
    return slot;
}

/* What is in it has happened again, or more is known of it. */
static void slot_touch(struct history *history, struct history_slot *slot)
{
    struct history_user *user = slot->user;

    slot_leave(history, slot);
    slot_enter(history, slot, user, history->next_serial++);
    atomic_store_explicit(&slot_record(history, slot)->serial, slot->serial, memory_order_release);
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

/* Takes the descriptor on success. */
static int history_map(struct history **ret, int *fd)
{
    _cleanup_(history_freep) struct history *history = calloc(1, sizeof(*history));
    void *file;

    if (!history)
        return fatal(-ENOMEM);
    history->fd = -1;
    history->next_serial = 1;
    RB_INIT(&history->tree);
    RB_INIT(&history->users);
    list_init(&history->free);
    file = sys->mmap(NULL, sizeof(*history->file), PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    if (file == MAP_FAILED)
        return fatal(-errno);
    history->file = file;
    history->fd = steal_fd(fd);
    *ret = steal_ptr(&history);
    return 0;
}

int history_new(struct history **ret)
{
    _cleanup_close_ int fd = sys_memfd_new_fixed("memoryd:history", sizeof(struct history_file));
    struct history *history;
    int r;

    if (fd < 0)
        return fatal(-errno);
    r = history_map(&history, &fd);
    if (r)
        return r;
    history->file->major = HISTORY_MAJOR;
    history->file->record_size = sizeof(struct history_record);
    history->file->n_records = HISTORY_RECORDS;
    history->file->magic = HISTORY_MAGIC;
    for (uint32_t i = 0; i < HISTORY_RECORDS; i++)
        list_append(&history->free, &history->slots[i].in_user);
    *ret = history;
    return 0;
}

static bool is_text(const char *text, size_t size)
{
    return memchr(text, 0, size);
}

static bool record_is_sound(const struct history_record *record)
{
    return record->kind && record->kind < HISTORY_KINDS && is_text(record->resource, sizeof(record->resource)) &&
           is_text(record->pool, sizeof(record->pool)) && is_text(record->program, sizeof(record->program)) &&
           is_text(record->sentence, sizeof(record->sentence));
}

static int compare_slots(const void *a, const void *b)
{
    const struct history_slot *const *one = a, *const *other = b;

    return compare_serials(*one, *other);
}

/* In the order of their serials; two with one serial are damaged. 0 or -ENOMEM. */
static int history_index(struct history *history)
{
    struct history_slot *order[HISTORY_RECORDS];
    uint32_t n = 0;

    for (uint32_t i = 0; i < HISTORY_RECORDS; i++) {
        struct history_slot *slot = &history->slots[i];
        struct history_record *record = &history->file->records[i];

        slot->serial = record->serial;
        if (slot->serial && slot->serial < UINT64_MAX / 2 && record_is_sound(record)) {
            order[n++] = slot;
            continue;
        }
        record->serial = 0;
        list_append(&history->free, &slot->in_user);
    }
    qsort(order, n, sizeof(order[0]), compare_slots);
    for (uint32_t i = 0; i < n; i++) {
        struct history_record *record = slot_record(history, order[i]);
        struct history_user *user = user_get(history, record->uid);

        if (!user)
            return fatal(-ENOMEM);
        if (order[i]->serial >= history->next_serial) {
            history->next_serial = order[i]->serial + 1;
            slot_enter(history, order[i], user, order[i]->serial);
            continue;
        }
        user_put(history, user);
        record->serial = 0;
        list_append(&history->free, &order[i]->in_user);
    }
    return 0;
}

int history_adopt(struct history **ret, int fd)
{
    _cleanup_(history_freep) struct history *history = NULL;
    struct history_file *file;
    int r;

    if (!sys_memfd_is_fixed(fd, sizeof(*file)))
        return HISTORY_E_FORMAT;
    r = history_map(&history, &fd);
    if (r)
        return r;
    file = history->file;
    r = file->magic == HISTORY_MAGIC && file->major == HISTORY_MAJOR &&
                file->record_size == sizeof(struct history_record) && file->n_records == HISTORY_RECORDS
            ? history_index(history)
            : HISTORY_E_FORMAT;
    if (r) {
        (void)steal_fd(&history->fd);
        return r;
    }
    *ret = steal_ptr(&history);
    return 0;
}

struct history *history_free(struct history *history)
{
    struct history_user *user;

    if (!history)
        return NULL;
    while ((user = RB_MIN(history_users, &history->users))) {
        RB_REMOVE(history_users, &history->users, user);
        free(user);
    }
    if (history->file)
        (void)sys->munmap(history->file, sizeof(*history->file));
    (void)fd_close(history->fd);
    free(history);
    return NULL;
}

int history_fd(const struct history *history)
{
    return history->fd;
}

/* ---- what happens ------------------------------------------------------------------------------------------------ */

/* The end of a session is one record, and ends that nobody need look into are one for a program. */
static bool is_repeat(const struct history_record *record, const struct history_record *entry)
{
    bool quiet = entry->end == HISTORY_END_GOODBYE && record->end == HISTORY_END_GOODBYE && !entry->holds &&
                 !record->holds && !strcmp(record->program, entry->program);

    if (record->kind != entry->kind || record->uid != entry->uid)
        return false;
    if (entry->kind == HISTORY_ENDED)
        return record->session == entry->session || quiet;
    return record->session == entry->session && record->pid == entry->pid && record->method == entry->method &&
           record->status == entry->status && !strcmp(record->pool, entry->pool) &&
           !strcmp(record->resource, entry->resource);
}

static struct history_slot *find_repeated(struct history *history, const struct history_user *user,
                                          const struct history_record *entry)
{
    unsigned n = 0;

    for (struct list *link = user->slots.prev; link != &user->slots && n < REPEATS_MAX; link = link->prev, n++) {
        struct history_slot *slot = container_of(link, struct history_slot, in_user);

        if (is_repeat(slot_record(history, slot), entry))
            return slot;
    }
    return NULL;
}

/* All but the serial. */
static void record_write(struct history_record *record, const struct history_record *entry)
{
    const size_t head = offsetof(struct history_record, first_ms);

    memcpy((char *)record + head, (const char *)entry + head, sizeof(*record) - head);
}

uint32_t history_add(struct history *history, const struct history_record *entry)
{
    struct history_user *user = user_get(history, entry->uid);
    struct history_record written = *entry;
    struct history_slot *slot;

    if (!user)
        return HISTORY_NONE;
    slot = find_repeated(history, user, entry);
    written.first_ms = written.last_ms = clock_wall_ms();
    written.count = 1;
    if (slot) {
        struct history_record *record = slot_record(history, slot);

        written.first_ms = record->first_ms;
        written.count = record->count == UINT32_MAX ? record->count : record->count + 1;
        /* another broker saw the end of the same session, and died of that */
        if (entry->kind != HISTORY_ENDED || record->session != entry->session)
            record_write(record, &written);
        slot_touch(history, slot);
        return slot_index(history, slot);
    }
    slot = slot_take(history, user);
    record_write(slot_record(history, slot), &written);
    slot_enter(history, slot, user, history->next_serial++);
    atomic_store_explicit(&slot_record(history, slot)->serial, slot->serial, memory_order_release);
    return slot_index(history, slot);
}

const struct history_record *history_ended(const struct history *history, uint32_t index, uint64_t session)
{
    const struct history_record *record = index < HISTORY_RECORDS ? &history->file->records[index] : NULL;

    return record && record->serial && record->kind == HISTORY_ENDED && record->session == session ? record : NULL;
}

void history_set_end(struct history *history, uint32_t index, enum history_end end, uint32_t status)
{
    struct history_record *record = &history->file->records[index];

    assert(record->serial && record->kind == HISTORY_ENDED);
    record->status = status;
    record->end = end;
    slot_touch(history, &history->slots[index]);
}

uint32_t history_next_open(const struct history *history, uint32_t index, const struct history_record **ret)
{
    for (; index < HISTORY_RECORDS; index++) {
        const struct history_record *record = &history->file->records[index];

        if (!record->serial || record->kind != HISTORY_ENDED || record->end != HISTORY_END_DIED)
            continue;
        *ret = record;
        return index;
    }
    return HISTORY_NONE;
}

const struct history_record *history_next(const struct history *history, uint64_t *cursor, unsigned *budget)
{
    struct history_slot key = {.serial = *cursor};
    struct history_slot *slot = RB_NFIND(history_tree, (struct history_tree *)&history->tree, &key);

    if (!slot) {
        *cursor = 0;
        return NULL;
    }
    if (!*budget)
        return NULL;
    --*budget;
    *cursor = slot->serial + 1;
    return slot_record(history, slot);
}
