/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The keys of memoryd.conf: one table that says for each where it goes and what it takes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"

/* What a process of the smallest supported address space can map. */
#define CONFIG_ADDRESS_TOP (UINT64_C(1) << 47)

#define GIB (UINT64_C(1) << 30)
#define TIB (UINT64_C(1) << 40)

enum kind {
    KIND_NUMBER,
    KIND_SIZE,
    KIND_SIZE_OR_PERCENT,
    KIND_TIME,
    KIND_LIMIT,      /* a number or "none" */
    KIND_SIZE_LIMIT, /* a size or "none" */
    KIND_UID_BYTES,  /* a size, a percentage or "none" */
    KIND_HALF,
    KIND_NODES,
    KIND_WEIGHTS,
    KIND_PLACEMENT,
    KIND_PAGES,
    KIND_COMMIT,
    KIND_SPIN,
    KIND_UNASKED /* pages */
};

struct key {
    const char *section; /* "pool" for [pool NAME] */
    const char *name;
    enum kind kind;
    size_t offset; /* in struct config, or in struct config_pool */
    uint64_t min;
    uint64_t max;
    bool live; /* a reload puts it in force; else only the start of a broker does */
};

/* No fewer than there are in the table. */
#define CONFIG_KEYS_MAX 64

extern const struct key config_keys[];
extern const size_t config_n_keys;

/* Stores what is written there, into `pool` if the key is of a pool. False, and nothing is stored, if the key does not
 * take it. */
bool key_store(const struct key *key, struct config *config, struct config_pool *pool, const char *value);
/* Is the value the same in two of what it is stored into? */
bool key_is_same(const struct key *key, const void *a, const void *b);
/* The value of a key that is in force from a start on only. */
void key_copy(const struct key *key, void *to, const void *from);
/* What the key takes, for the end of a sentence. Returns `text`. */
const char *key_takes(const struct key *key, char *text, size_t size);
