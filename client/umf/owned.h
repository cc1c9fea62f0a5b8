/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What pools got of their providers, by address.
 *
 * Ranges nest where a pool's provider has its memory from another pool: the innermost, which came last, is meant then.
 * Looking up takes no lock: umfFree() begins with it. What changes is changed with the lock.
 *
 * With an entry goes the provider's handle of it, malloc()'s, once there is one.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <memclient/umf/umf/memory_pool.h>

struct owned {
    uint64_t start;
    uint64_t size; /* as the provider was asked; 0 takes 1 byte here */
    umf_memory_pool_handle_t pool;
    unsigned level; /* how many pools' memory it lay in when it came, at the most */
};

/* The innermost that holds the address. */
bool owned_find(const void *ptr, struct owned *ret);
/* The one of this pool that starts just there. */
bool owned_find_base(const void *ptr, umf_memory_pool_handle_t pool, struct owned *ret);
/* The handle that is kept with it; NULL: none. With the lock, or ipc_lock_read(). */
void *owned_handle(const struct owned *owned);

/* What is below is done with this mutex. A fork takes it before ipc_lock(). */
extern pthread_mutex_t owned_mutex;

/*
 * Enters what the pool got just now. What that overlaps, other than lying in it, was given back behind our back, and is
 * forgotten. INVALID_ARGUMENT: it ends beyond all addresses. OUT_OF_HOST_MEMORY, also if it lies in 16 pools' memory.
 */
umf_result_t owned_add(umf_memory_pool_handle_t pool, uint64_t start, uint64_t size);
/* Takes out the pool's that starts just there and is so large, if that is not 0; false if there is none. A handle that
 * it has is to be taken then. */
bool owned_take(umf_memory_pool_handle_t pool, const void *ptr, uint64_t size, struct owned *ret);
/* What was taken out is where it was, whatever is there too. */
umf_result_t owned_put_back(const struct owned *owned);
/* Makes two of it, the second from the address on. */
umf_result_t owned_split(const struct owned *owned, uint64_t address);
/* What starts at `high`, behind it, becomes a part of it. */
umf_result_t owned_merge(const struct owned *low, uint64_t high);
/* The pool's first from *owned on, which is all zeros at first. */
bool owned_next(umf_memory_pool_handle_t pool, struct owned *owned);

/* It has none. false without memory. */
bool owned_keep_handle(const struct owned *owned, void *handle);
/* NULL: it had none. */
void *owned_take_handle(const struct owned *owned);
/* Of what was taken; also without the lock. */
void owned_free_handle(void *handle);
