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

/* Adds as many as there are of what is asked for, if that is of one size, and takes note of the demand. Outcomes of
 * batch_add_stock(). */
int stocking_take(struct batch *batch, struct pool *pool, const struct alloc_spec *spec,
                  const struct buffer_owner *owner, struct problem *problem);
/* Puts back one that was not needed after all. */
void stocking_put(struct broker *broker, struct buffer *buffer, int fd);

/* Bytes of this pool's stock that can be taken now. The rest is being made. */
uint64_t stocking_ready(const struct broker *broker, const struct pool *pool);

/* So many bytes found no room in this pool: gives back stock that is in the way, that on this node first. */
void stocking_shrink(struct broker *broker, const struct pool *pool, uint32_t node, uint64_t bytes);
/* The machine has no memory for what the pools have room for: gives back all stock. False if there is none. */
bool stocking_drain(struct broker *broker);
/* A pool fills up: looks at its stock soon. */
void stocking_look(struct broker *broker);
