/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking for attributes and looking at just which bytes come back.
 *
 * Every attribute has a type, and an answer is as long as the type: callers pass variables of it, and a byte more would
 * be another variable's. So each is asked for several times, into memory that is filled with something else each time;
 * each byte of the type must change, and none before or behind it.
 *
 * A test lists what it knows of attributes in a table; whatever is not in the table must be INVALID_ARGUMENT.
 */
#pragma once

#include "tests/unit/hsa/hsa.h"

#define ANSWER_MAX 128
/* `number` of a row: the value is not the same everywhere; a test of its own looks at it. */
#define DIFFERS UINT64_MAX

/* One of the five functions: hsa_agent_get_info() and its like, with the handle as a number. */
typedef hsa_status_t ask_function(uint64_t handle, uint32_t attribute, void *value);

hsa_status_t ask_system(uint64_t none, uint32_t attribute, void *value);
hsa_status_t ask_agent(uint64_t agent, uint32_t attribute, void *value);
hsa_status_t ask_region(uint64_t region, uint32_t attribute, void *value);
hsa_status_t ask_pool(uint64_t pool, uint32_t attribute, void *value);
hsa_status_t ask_cache(uint64_t cache, uint32_t attribute, void *value);

struct attribute {
    uint32_t attribute;
    const char *name;
    size_t size;
    uint64_t number; /* that it is; of values of more than 8 bytes, the byte that all of them are */
};
/* clang-format off */
#define ATTRIBUTE(name, type, number) {name, #name, sizeof(type), number}
/* clang-format on */

/* One answer, of this size exactly; it is put into value, if that is not NULL. */
void ask_exactly(ask_function *ask, uint64_t handle, uint32_t attribute, size_t size, void *value);

/* Each row, which wants a value to write to, and that no other attribute of those that hsa.h, hsa_ext_amd.h or nobody
 * defines is answered. */
void ask_all(ask_function *ask, uint64_t handle, const struct attribute *rows, size_t n);

/* Whoever is asked for a handle that does not exist says `wanted`, and lives; `n` handles do exist. */
void ask_handles(ask_function *ask, uint32_t attribute, const uint64_t *handles, size_t n, hsa_status_t wanted);

/* The order of checks: value before handle before attribute. */
void ask_in_order(ask_function *ask, uint64_t handle, uint32_t attribute, hsa_status_t bad_handle);

/* For callbacks of iterations: notes the handle. */
struct visit {
    unsigned calls;
    unsigned end_at; /* the call that returns something else; 0 = none */
    hsa_status_t end_with;
    uint64_t seen[32];
};
hsa_status_t visit(uint64_t handle, struct visit *v);
