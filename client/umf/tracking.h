/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The provider that a pool gets instead of the application's. It enters what the pool allocates into owned.h, and
 * leaves everything else to the application's.
 */
#pragma once

#include <stdbool.h>

#include <memclient/umf/umf/memory_pool.h>
#include <memclient/umf/umf/memory_provider.h>

/* Calls nothing of the pool's provider. */
void tracking_init(umf_memory_pool_handle_t pool);
/* Forgets what the pool has not freed. */
void tracking_deinit(umf_memory_pool_handle_t pool);

/* Is this a pool's tracking? Then it knows the size of what is freed with size 0. */
bool tracking_is(umf_memory_provider_handle_t provider);
/* Frees all that the pool has not freed. */
void tracking_give_back_all(umf_memory_provider_handle_t tracking);

/* Copies the provider's handle of the coarse allocation around ptr, `size` bytes, into `data`. The first call makes it,
 * and it is kept until the allocation is freed. *base and *base_size get the allocation. */
umf_result_t tracking_get_ipc(umf_memory_pool_handle_t pool, const void *ptr, size_t size, void *data, void **base,
                              size_t *base_size);
