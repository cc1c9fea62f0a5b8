/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One handle space: how each interface makes memory, hands it on as a token or a descriptor, and opens what another one
 * has handed on. A file for each interface; test-handles.c lets them all meet.
 *
 * All of this runs in child processes, so that each has one interface only, and fails by CHECK().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memclient/memclient.h>

#include "tests/support/child.h"

#define MEMORY_SIZE ((size_t)192 << 10)

/* What an interface has made or opened. */
struct memory {
    char *at;     /* MEMORY_SIZE bytes */
    void *object; /* the interface's own, for giving it back */
    uint64_t number;
};

/* What another process is told. */
struct handed {
    struct memclient_token token;
    int fd;                /* of its receiver; -1 = the token is meant */
    uint64_t offset;       /* of the memory, in its buffer */
    uint64_t buffer_bytes; /* of all of the buffer */
    uint64_t address;      /* where the maker has it */
};

struct facade {
    const char *name;
    void (*make)(struct memory *memory);
    /* The interface's own way to a token or a descriptor; NULL = by the buffer. */
    void (*get_token)(const struct memory *memory, struct handed *handed);
    void (*get_fd)(const struct memory *memory, struct handed *handed);
    /* The interface's own way to the buffer, counted up; NULL = it has none. */
    struct memclient_buffer *(*get_buffer)(const struct memory *memory);
    void (*give_back)(struct memory *memory);
    /* NULL = it does not take such things */
    void (*open_token)(const struct handed *handed, struct memory *memory);
    void (*open_fd)(const struct handed *handed, struct memory *memory);
    void (*close_token)(struct memory *memory);
    void (*close_fd)(struct memory *memory);
};

extern const struct facade native_facade, hsa_vmem_facade, hsa_region_facade, umf_pool_facade, umf_provider_facade;
extern const struct facade nbla_facade, nbla_physical_facade, svm_facade;

/* The token of a descriptor's memory, for an interface that opens tokens only; *buf has to last until that is done. */
void token_of_fd(const struct handed *handed, struct memclient_token *token, struct memclient_buffer **buf);
