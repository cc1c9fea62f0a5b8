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
struct broker;
struct pool;

/* Is anything of this pool's, or of what this account may have, on its way back? */
bool reclaim_is_coming(const struct pool *pool, const struct account *account);
/* … and would so many buffers with so many bytes altogether fit, and be allowed, once it is back? */
bool reclaim_is_enough(const struct pool *pool, const struct account *account, uint64_t bytes, uint32_t n);

/*
 * A step ended with this status: is what clients have cached wanted for it, of this user alone where it is his limit,
 * and still on its way? The ticket is 0 at first (caches.h).
 */
bool reclaim_caches(struct broker *broker, uint64_t *ticket, int status, uid_t uid);

/* There is room, but no memory or no descriptors: all stock and all that is cached goes. False if that is nothing. */
bool reclaim_all(struct broker *broker, uint64_t *ticket);
