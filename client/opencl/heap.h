/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A heap: a disjoint pool of UMF's interface over the memoryd provider, whose slabs are buffers of the broker.
 *
 * A provider between the two caches slabs and large allocations that were freed, for the next allocation of their size,
 * and the broker may take them for others at any time (memclient_cache_put()). What it does not cache it puts into
 * free_queue.h, so that no free makes a call.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct memclient_svm_options;
struct svm_heap;

/* Connects, if nothing has yet. svm_heap_alloc() reports options that the broker cannot follow. */
int svm_heap_new(const struct memclient_svm_options *options, struct svm_heap **heap);
/* Frees it with all that was allocated. In a child of fork() the parent's heap is left as it is. */
void svm_heap_free(struct svm_heap *heap);

/* 0, or a negative errno with its sentence. alignment is a power of two, of at most a page. */
int svm_heap_alloc(struct svm_heap *heap, size_t size, size_t alignment, void **ptr);
void svm_heap_release(struct svm_heap *heap, void *ptr);
/* Is an allocation of this size a buffer of its own? */
bool svm_heap_is_separate(const struct svm_heap *heap, size_t size);
/* table_generation() when it was made. */
unsigned svm_heap_generation(const struct svm_heap *heap);
