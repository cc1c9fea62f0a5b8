/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The warm stock: workers make what mem/stock.h says should be there, and op_alloc.c takes it.
 *
 * A buffer in stock has all that costs time: its pages, its record, its place with the keeper, its watch, and perhaps
 * the descriptor that its first user will want. Taking it only changes records.
 *
 * Stock gives way. A request that finds no room where stock is has it given back, and waits for it as for other memory
 * that is on its way back. No stock is kept in a pool that is nearly full, on a machine that is short of memory, or by
 * a broker that is short of descriptors.
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

/* 0 or -ENOMEM. Where no pool may have stock, all of these functions do nothing. */
int stocking_init(struct broker *broker);
/* Leaves the buffers in stock to the broker. No job may be running. */
void stocking_deinit(struct broker *broker);
/* Makes no more stock, and gives up what is being made. */
void stocking_stop(struct broker *broker);

/* Puts what another broker had in stock into bins again. */
void stocking_restore(struct broker *broker);

/* Adds buffers in stock to the batch, as many of the requested ones as there are, if all have one size. Takes note of
 * the demand. Outcomes of batch_add_stock(). */
int stocking_take(struct batch *batch, struct pool *pool, const struct alloc_spec *spec,
                  const struct buffer_owner *owner, struct problem *problem);
/* Puts a buffer back that was taken from stock and is not needed after all. */
void stocking_put(struct broker *broker, struct buffer *buffer, int fd);

/* Bytes of this pool's stock that can be taken now. The rest is being made. */
uint64_t stocking_ready(const struct broker *broker, const struct pool *pool);

/* Gives back stock, on this node first, since so many bytes found no room in this pool. */
void stocking_shrink(struct broker *broker, const struct pool *pool, uint32_t node, uint64_t bytes);
/* Gives back all stock, since the machine has less memory than the pools have room. False if there is none. */
bool stocking_drain(struct broker *broker);
/* Has all bins looked at soon, since a pool fills up. */
void stocking_look(struct broker *broker);
