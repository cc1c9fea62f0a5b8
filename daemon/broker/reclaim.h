/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is on its way back, or can be reclaimed: of buffers that end, of the warm stock, and of what clients have
 * cached. A request that finds no room, or meets a limit, waits for it, whether its caller wanted to wait or not, so
 * that a user who gives memory back and asks for as much gets it. It waits as long as that may be enough.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct account;
struct alloc_spec;
struct broker;
struct pool;

/* Is anything of this pool, or of what this account may have, on its way back, and would all that is asked for fit, and
 * be allowed, once it is back? */
bool reclaim_may_serve(struct pool *pool, const struct account *account, const struct alloc_spec *spec);
/* The bytes that are asked for, if they would fit then, as much as it may have; else 0. */
uint64_t reclaim_bytes(struct pool *pool, const struct account *account, const struct alloc_spec *spec);

/*
 * A request got this status. True: what clients have cached may help, of this user alone if it is their limit, and is
 * still being taken. The ticket is 0 at first (caches.h).
 */
bool reclaim_caches(struct broker *broker, uint64_t *ticket, int status, uid_t uid);

/* There is room, but no memory or descriptors: gives back all stock, and all that is cached. False: there is none. */
bool reclaim_all(struct broker *broker, uint64_t *ticket);
