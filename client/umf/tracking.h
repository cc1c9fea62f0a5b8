/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The provider that a pool gets instead of the application's: it enters what the pool allocates among what is owned, and
 * leaves everything else to the application's.
 */
#pragma once

#include <stdbool.h>

#include <memclient/umf/umf/memory_pool.h>
#include <memclient/umf/umf/memory_provider.h>

/* The pool's own provider is not called before memory is needed. */
void tracking_init(umf_memory_pool_handle_t pool);
/* Forgets what the pool has not freed. */
void tracking_deinit(umf_memory_pool_handle_t pool);

/* Is it one of these? Then it knows how much is to be freed, where that is 0. */
bool tracking_is(umf_memory_provider_handle_t provider);
/* Frees all that the pool has not. */
void tracking_give_back_all(umf_memory_provider_handle_t tracking);

/*
 * The provider's handle of the coarse allocation that ptr lies in, made once and kept with it: size bytes into data,
 * as the provider says. *base and *base_size get what the allocation is.
 */
umf_result_t tracking_get_ipc(umf_memory_pool_handle_t pool, const void *ptr, size_t size, void *data, void **base,
                              size_t *base_size);
