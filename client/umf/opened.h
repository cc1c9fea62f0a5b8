/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other processes' memory that is open in pools: a record for each handle of each pool, counted.
 */
#pragma once

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

/* Around a fork, before ipc_lock(). */
void opened_lock(void);
void opened_unlock(void);
void opened_in_child(void);
