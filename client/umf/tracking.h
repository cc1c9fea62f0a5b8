/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The provider that a pool really gets: it passes everything on to the application's, and notes in the tracker what
 * comes back. It is also what opens other processes' memory for the pool.
 */
#pragma once

#include <memclient/umf/memory_pool.h>
#include <memclient/umf/memory_provider.h>

/* `upstream` is not looked at before memory is needed. */
umf_result_t tracking_new(umf_memory_provider_handle_t upstream, umf_memory_pool_handle_t pool,
                          umf_memory_provider_handle_t *ret);
/* Ends it, and closes what is open. */
void tracking_free(umf_memory_provider_handle_t tracking);

/*
 * The provider's handle of the coarse allocation that ptr lies in, made once and kept with it: size bytes into data.
 * *base and *base_size get what the allocation is.
 */
umf_result_t tracking_get_ipc(umf_memory_provider_handle_t tracking, const void *ptr, size_t size, void *data,
                              void **base, size_t *base_size);

/* Opens what a provider's handle of `size` bytes means, base_size bytes; what is open is counted. */
umf_result_t tracking_open(umf_memory_provider_handle_t tracking, const void *data, size_t size, size_t base_size,
                           void **base);
/* Counts down what is open around ptr. INVALID_ARGUMENT if nothing is. */
umf_result_t tracking_close(const void *ptr);

void tracking_fork_prepare(void);
void tracking_fork_parent(void);
void tracking_fork_child(void);
