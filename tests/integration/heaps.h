/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heaps for tests: one with a broker of its own, and how children become members of it.
 *
 *     static void some_promise(void **state)
 *     {
 *         struct heap_test test = heap_begin(NULL, 0);
 *         struct child child;
 *         ...
 *         child_start(&child, be_a_member, &test.start);
 *         ...
 *         heap_end(&test);
 *     }
 */
#pragma once

#include <memclient/heap.h>

#include "tests/integration/clients.h"

#define BLOCK          65536u
#define BLOCKS_OF_SLAB 16
#define SMALL          4096u
#define SMALL_OF_SLAB  (BLOCKS_OF_SLAB * BLOCK / SMALL)

/* Blocks of BLOCK and of SMALL bytes. */
struct memclient_heap *heap_of(struct memclient_context *ctx, const char *name, unsigned flags);
/* Of one size; 0 = as it is without that option. */
struct memclient_heap *heap_of_size(struct memclient_context *ctx, uint64_t size, uint64_t slab_size, size_t slabs_max);

/* Its counts must add up. */
struct memclient_heap_info info_of(struct memclient_heap *heap);

/* What a child needs to become a member, or a reader. */
struct heap_start {
    char socket[200];
    struct memclient_token token;
    uid_t uid;  /* whom the child becomes; 0: it stays who it is */
    unsigned n; /* for heap_fill_in_child() */
};
struct memclient_heap *heap_open_in_child(const struct heap_start *start);
/* A child's body: allocates n blocks of SMALL bytes, gives each second one away, with the pattern of its number, passes
 * the last one, and waits. */
void heap_fill_in_child(int channel, void *start);

struct heap_test {
    struct broker_process *broker;
    struct memclient_context *ctx;
    struct memclient_heap *heap; /* the test sets it to NULL when it has closed it */
    struct heap_start start;     /* with a token of it */
};
struct heap_test heap_begin(const char *name, unsigned flags);
struct heap_test heap_begin_of_size(uint64_t size, uint64_t slab_size, size_t slabs_max);
void heap_end(struct heap_test *test);
