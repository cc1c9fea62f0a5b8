/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of other processes that is open in pools. Each handle of each pool has a counted record. */
#pragma once

#include <pthread.h>

#include <memclient/umf/umf/memory_pool.h>

/* Opens the memory of a provider's handle of `size` bytes, which has base_size bytes at *base. If the pool has it open,
 * that only counts. `hash` is the handle's. */
umf_result_t opened_open(umf_memory_pool_handle_t pool, const void *handle, size_t size, unsigned hash,
                         size_t base_size, void **base);
/* Closes what is open around ptr once. INVALID_ARGUMENT: nothing is. */
umf_result_t opened_close(const void *ptr);
/* Returns the pool that has the memory around ptr open, if it is tracked; else NULL. */
umf_memory_pool_handle_t opened_pool(const void *ptr);
/* Closes everything that the pool has open. */
void opened_close_all(umf_memory_pool_handle_t pool);

/* A fork takes it before ipc_lock(). */
extern pthread_mutex_t opened_mutex;
/* Call it in the child of a fork, after that mutex is made anew. */
void opened_in_child(void);
