/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warm stock, kept: what mem/stock.h says should be there is made by workers, and taken by op_alloc.c.
 *
 * A buffer in stock has all that costs time: its pages, its record, its place with the keeper, its watch, and perhaps
 * the descriptor that its first user will want. Taking it changes records and nothing else.
 *
 * Stock gives way. Whoever finds no room where stock is has it given back, and waits for that as for whatever else
 * comes back. None is kept in a pool that is nearly full, on a machine that is short of memory, or by a broker that is
 * short of descriptors.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "mem/pool.h"

struct alloc_spec;
struct batch;
struct broker;
struct buffer;
struct buffer_owner;

/* 0 or -ENOMEM. Without a pool that may have stock there is nothing of it, and all the other functions do nothing. */
int stocking_init(struct broker *broker);
/* What is in stock stays, and is the broker's to end; no job may be running. */
void stocking_deinit(struct broker *broker);
/* No more is made, and what is being made is given up. */
void stocking_stop(struct broker *broker);

/* What another broker had in stock still is. */
void stocking_restore(struct broker *broker);

/* As many as there are of what is asked for, if all of that is of one size. Outcomes of batch_add_stock(). It takes
 * note of the demand. */
int stocking_take(struct batch *batch, struct pool *pool, const struct alloc_spec *spec,
                  const struct buffer_owner *owner, struct problem *problem);
/* It was not needed after all. */
void stocking_put(struct broker *broker, struct buffer *buffer, int fd);

/* Bytes of this pool's stock that could be taken now; the rest is being made. */
uint64_t stocking_ready(const struct broker *broker, const struct pool *pool);

/* So many bytes found no room in this pool: they will, as far as stock is in the way, that on this node first. */
void stocking_shrink(struct broker *broker, const struct pool *pool, uint32_t node, uint64_t bytes);
/* So were they, though there was room, because the memory is not there: all of it goes. False if there is none. */
bool stocking_drain(struct broker *broker);
/* A pool fills up. */
void stocking_look(struct broker *broker);
