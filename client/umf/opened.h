/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other processes' memory that is open in pools: a record for each handle of each pool, counted.
 */
#pragma once

#include <pthread.h>

#include <memclient/umf/umf/memory_pool.h>

/*
 * Opens what a provider's handle of `size` bytes means, base_size bytes at *base, or counts it up if that is open; it
 * is no call then. hash is the handle's.
 */
umf_result_t opened_open(umf_memory_pool_handle_t pool, const void *handle, size_t size, unsigned hash,
                         size_t base_size, void **base);
/* Counts down what is open around ptr. INVALID_ARGUMENT if nothing is. */
umf_result_t opened_close(const void *ptr);
/* The pool that has open what is around ptr; NULL: none, or it is not to be tracked. */
umf_memory_pool_handle_t opened_pool(const void *ptr);
/* Closes all that is open in a pool. */
void opened_close_all(umf_memory_pool_handle_t pool);

/* A fork takes it before ipc_lock(). */
extern pthread_mutex_t opened_mutex;
/* In the child of a fork, with that mutex made anew. */
void opened_in_child(void);
