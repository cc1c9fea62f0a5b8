/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where allocations come from: a disjoint pool of UMF's interface over the memoryd provider, whose slabs are buffers of
 * the broker. Between the two there is a provider that keeps what is freed (cached.h), or puts it into free_queue.h, so
 * that freeing makes no call.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct memclient_svm_options;
struct svm_heap;

/* Connects, if nobody has yet. Options that the broker cannot follow are told by svm_heap_alloc(). */
int svm_heap_new(const struct memclient_svm_options *options, struct svm_heap **heap);
/* With all that was allocated. In a child of fork() the parent's heap is left as it is. */
void svm_heap_free(struct svm_heap *heap);

/* 0, or a negative errno with its sentence. alignment is a power of two, of at most a page. */
int svm_heap_alloc(struct svm_heap *heap, size_t size, size_t alignment, void **ptr);
void svm_heap_release(struct svm_heap *heap, void *ptr);
/* Is what has this size a buffer of its own? */
bool svm_heap_is_separate(const struct svm_heap *heap, size_t size);
/* table_generation() when it was made. */
unsigned svm_heap_generation(const struct svm_heap *heap);
