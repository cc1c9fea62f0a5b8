/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of what the keeper holds: key -> descriptor.
 *
 * It is made once, with room for more than the process may ever have open, so putting something in cannot fail and
 * allocates nothing. Open addressing, at most half full; removing moves the followers up, so there are no tombstones.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "keeper/key.h"

struct store_slot {
    struct keeper_key key; /* kind 0: empty */
    int fd;
};

struct store {
    struct store_slot *slots;
    size_t n_slots; /* a power of two */
    size_t n;
};

#define STORE_NULL ((struct store){.slots = NULL})

/* `most` = the limit of open files. 0 or a negative errno. */
int store_init(struct store *store, uint64_t most);
/* Closes all that is in it. */
void store_deinit(struct store *store);

/* Takes the descriptor. Returns what had the key before, which is the caller's now, or -1. */
int store_put(struct store *store, struct keeper_key key, int fd);
/* The same, as a keeper_take_fn: closes what had the key. */
int store_take_in(void *store, enum keeper_kind kind, uint64_t id, int fd);
/* Takes a descriptor out, which is the caller's now; -1 if there is none. */
int store_remove(struct store *store, struct keeper_key key);
/* Borrows a descriptor; -1 if there is none. */
int store_get(const struct store *store, struct keeper_key key);
/* The next slot in use at or after *position, which is moved behind it; NULL at the end. Start with 0, and change
 * nothing meanwhile. */
const struct store_slot *store_next(const struct store *store, size_t *position);
