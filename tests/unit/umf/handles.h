/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory of the OS provider with contents, and handles of it. */
#pragma once

#include "tests/support/memory.h"
#include "tests/unit/umf/umf.h"

#define HANDLE 64

/* Contents of shared memory; `next` points to another entry there. */
struct entry {
    struct entry *next;
    char text[32];
};

struct note {
    uint8_t handle[HANDLE];
    char *address; /* the producer's */
};

extern umf_memory_provider_handle_t provider;
extern size_t page, size; /* some pages */

umf_result_t create(unsigned protection, umf_memory_provider_handle_t *made);
/* Writes two entries, one in the first page and one in the last. */
void fill(char *ptr);
struct note produce(void);
char *open_it(const struct note *note);

/* For cmocka: sets `page` and `size` for the group, `provider` for each test. */
int group_setup(void **state);
int setup(void **state);
int teardown(void **state);
