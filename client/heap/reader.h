/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers. A reader can write nothing but its queue, which whoever invites it makes for it. The queue is a ring of
 * words, each a block and its generation. Members take from it what is there, free it if the block is the reader's and
 * of that generation, and then count the ring's tail up; so two of them may do it at once, and one that dies on the
 * way has lost nothing. The ring is written by one who is not trusted: whatever it says, only the reader's own blocks
 * are freed.
 */
#pragma once

#include "heap/heap.h"

/* ---- of a member, with `sweep` ----------------------------------------------------------------------------------- */

/* Invites one: makes its queue and its entry. */
int queue_invite(struct memclient_heap *heap, struct memclient_token *token, uint64_t *member);

/* Frees what is in the queues. */
void queue_drain_all(struct memclient_heap *heap);

/* Will it never be heard of again? With the lock of its number. */
bool queue_reader_is_gone(struct memclient_heap *heap, unsigned number);

void queue_close(struct memclient_heap *heap, unsigned number);

/* ---- of the reader itself ---------------------------------------------------------------------------------------- */

/* Joins, by the queue that heap->control_buf and heap->queue are. */
int reader_join(struct memclient_heap *heap);

/* With a cache locked: takes a block, whose word is that. */
int reader_take(struct memclient_heap *heap, struct slab *slab, uint64_t index, uint64_t word);

/* With a cache locked: frees a block that the reader has. */
int reader_free(struct memclient_heap *heap, struct slab *slab, uint64_t index);

/* The slab of a token, which is mapped if it was not. */
int reader_open_slab(struct memclient_heap *heap, const struct memclient_block_token *token);
