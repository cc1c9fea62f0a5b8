/* SPDX-License-Identifier: Apache-2.0 */
/* See store.h. */

#include "keeper/store.h"

#include <assert.h>
#include <errno.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "sys/sys.h"

int store_init(struct store *store, uint64_t most)
{
    size_t n_slots = 64;
    void *slots;

    while (n_slots < 2 * most)
        n_slots *= 2;
    slots =
        sys->mmap(NULL, n_slots * sizeof(store->slots[0]), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (slots == MAP_FAILED)
        return -errno;
    *store = (struct store){.slots = slots, .n_slots = n_slots};
    return 0;
}

void store_deinit(struct store *store)
{
    size_t position = 0;
    const struct store_slot *slot;

    if (!store->slots)
        return;
    while ((slot = store_next(store, &position)))
        (void)fd_close(slot->fd);
    (void)sys->munmap(store->slots, store->n_slots * sizeof(store->slots[0]));
    *store = (struct store)STORE_NULL;
}

static bool is_key(const struct store_slot *slot, struct keeper_key key)
{
    return slot->key.kind == key.kind && slot->key.id == key.id;
}

/* Where the search for a key begins. Ids are serial numbers: a multiplication spreads them. */
static size_t store_home_of(const struct store *store, struct keeper_key key)
{
    uint64_t hash = (key.id ^ (uint64_t)key.kind << 56) * UINT64_C(0x9e3779b97f4a7c15);

    return (size_t)(hash >> 32) & (store->n_slots - 1);
}

/* The slot of the key, or the empty one where it would be. */
static size_t store_find(const struct store *store, struct keeper_key key)
{
    size_t i = store_home_of(store, key);

    while (store->slots[i].key.kind && !is_key(&store->slots[i], key))
        i = (i + 1) & (store->n_slots - 1);
    return i;
}

int store_put(struct store *store, struct keeper_key key, int fd)
{
    struct store_slot *slot = &store->slots[store_find(store, key)];
    int before = slot->key.kind ? slot->fd : -1;

    assert(key.kind && fd >= 0);
    if (before < 0)
        store->n++;
    /* each key has a descriptor of its own, and a process has fewer of those than there are slots */
    assert(store->n < store->n_slots);
    *slot = (struct store_slot){.key = KEEPER_KEY(key.kind, key.id), .fd = fd};
    return before;
}

int store_take_in(void *store, enum keeper_kind kind, uint64_t id, int fd)
{
    if (kind)
        fd = store_put(store, KEEPER_KEY(kind, id), fd);
    (void)fd_close(fd);
    return 0;
}

int store_get(const struct store *store, struct keeper_key key)
{
    const struct store_slot *slot = &store->slots[store_find(store, key)];

    return slot->key.kind ? slot->fd : -1;
}

int store_remove(struct store *store, struct keeper_key key)
{
    size_t mask = store->n_slots - 1;
    size_t hole = store_find(store, key);
    int fd = store->slots[hole].fd;

    if (!store->slots[hole].key.kind)
        return -1;
    for (size_t i = (hole + 1) & mask; store->slots[i].key.kind; i = (i + 1) & mask) {
        size_t home = store_home_of(store, store->slots[i].key);

        /* may it lie in the hole, that is, not before its home? */
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            store->slots[hole] = store->slots[i];
            hole = i;
        }
    }
    store->slots[hole].key.kind = 0;
    store->n--;
    return fd;
}

const struct store_slot *store_next(const struct store *store, size_t *position)
{
    while (*position < store->n_slots) {
        const struct store_slot *slot = &store->slots[(*position)++];

        if (slot->key.kind)
            return slot;
    }
    return NULL;
}
