/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of memoryd.conf: one table that says for each where it is stored and what it takes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"

/* The end of the smallest supported address space. */
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
    KIND_PERCENT,
    KIND_UID_BYTES, /* a size, a percentage or "none" */
    KIND_HALF,
    KIND_NODES,
    KIND_WEIGHTS,
    KIND_ALLOW,
    KIND_PLACEMENT,
    KIND_PAGES,
    KIND_COMMIT,
    KIND_CHARGE,
    KIND_SPIN,
    KIND_SERVE,
    KIND_DEFAULT_PAGES,
    KIND_LISTEN /* config_address(), or "off" */
};

struct key {
    const char *section; /* "pool" for [pool NAME], "user" for [user NAME] and [group NAME] */
    const char *name;
    enum kind kind;
    size_t offset; /* in struct config, struct config_pool or struct config_user */
    uint64_t min;
    uint64_t max;
    bool live; /* a reload puts it in force, not only the start of a broker */
};

/* At least as many as the table has. */
#define CONFIG_KEYS_MAX 64

extern const struct key config_keys[];
extern const size_t config_n_keys;

/* Stores the value, in `named` if the key is of a section with a name: the pool, user or group. False, and nothing is
 * stored, if the key does not take it. */
bool key_store(const struct key *key, struct config *config, void *named, const char *value);
/* Do two configurations, pools, users or groups have the same value? */
bool key_is_same(const struct key *key, const void *a, const void *b);
/* Copies the value of a key that is not live. */
void key_copy(const struct key *key, void *to, const void *from);
/* What the key takes, for the end of a sentence. Returns `text`. */
const char *key_takes(const struct key *key, char *text, size_t size);
