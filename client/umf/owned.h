/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that pools have from their providers, by address.
 *
 * Ranges nest if a pool's provider has its memory from another pool. Then the innermost, which came last, is found.
 * Looking up takes no lock, since umfFree() begins with it. Changes are made with a mutex.
 *
 * An entry may have the provider's handle of it, which is malloc()'s.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <memclient/umf/umf/memory_pool.h>

struct owned {
    uint64_t start;
    uint64_t size; /* as passed to the provider; 0 takes one byte here */
    umf_memory_pool_handle_t pool;
    unsigned level; /* the number of pools whose memory encloses it, at most */
};

/* Finds the innermost range around the address. */
bool owned_find(const void *ptr, struct owned *ret);
/* Finds the pool's range that starts exactly there. */
bool owned_find_base(const void *ptr, umf_memory_pool_handle_t pool, struct owned *ret);
/* The handle that is kept with it, or NULL. Call it with the mutex or ipc_lock_read(). */
void *owned_handle(const struct owned *owned);

/* All functions below need this mutex. A fork takes it before ipc_lock(). */
extern pthread_mutex_t owned_mutex;

/*
 * Adds what the pool has just allocated. Ranges that it overlaps without lying in them were freed without our
 * knowledge, and are dropped. INVALID_ARGUMENT: it ends beyond the last address. OUT_OF_HOST_MEMORY: also if 16 ranges
 * enclose it.
 */
umf_result_t owned_add(umf_memory_pool_handle_t pool, uint64_t start, uint64_t size);
/* Takes out the pool's range that starts exactly there, and has this size unless that is 0. The caller takes its handle
 * as well. */
bool owned_take(umf_memory_pool_handle_t pool, const void *ptr, uint64_t size, struct owned *ret);
/* Puts a range back that was taken out, whatever overlaps it now. */
umf_result_t owned_put_back(const struct owned *owned);
/* Splits the range; the second part starts at the address. */
umf_result_t owned_split(const struct owned *owned, uint64_t address);
/* Merges the range with the next, which starts at `high`. */
umf_result_t owned_merge(const struct owned *low, uint64_t high);
/* Finds the pool's first range from *owned on, which starts as zeros. */
bool owned_next(umf_memory_pool_handle_t pool, struct owned *owned);

/* Call it only for a range without a handle. False: no memory. */
bool owned_keep_handle(const struct owned *owned, void *handle);
/* NULL: it has none. */
void *owned_take_handle(const struct owned *owned);
/* Frees a handle that was taken. The mutex is not needed. */
void owned_free_handle(void *handle);
