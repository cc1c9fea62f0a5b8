/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is on its way back, or can be had back: of buffers that end, of the warm stock, and of what clients have
 * cached. A request that finds no room, or meets a limit, waits for it, whether its caller wanted to wait or not: a
 * user who gives memory back and asks for as much gets it. It waits as long as that may still do, and no longer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct account;
struct alloc_spec;
struct broker;
struct pool;

/* Is anything of this pool's, or of what this account may have, on its way back, and would all of this fit, and be
 * allowed, once it is? */
bool reclaim_may_serve(struct pool *pool, const struct account *account, const struct alloc_spec *spec);
/* All bytes of it, if it would fit then; else 0. */
uint64_t reclaim_bytes(struct pool *pool, const struct alloc_spec *spec);

/*
 * A step ended with this status: is what clients have cached wanted for it, of this user alone where it is his limit,
 * and still on its way? The ticket is 0 at first (caches.h).
 */
bool reclaim_caches(struct broker *broker, uint64_t *ticket, int status, uid_t uid);

/* There is room, but no memory or no descriptors: all stock and all that is cached goes. False if that is nothing. */
bool reclaim_all(struct broker *broker, uint64_t *ticket);
