/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of an allocation, also of one that heaps make. */
#pragma once

#include "module.h"

/* The most nodes of an allocation. */
#define OPEN_NODES_MAX 64

struct alloc_arguments {
    uint64_t size;
    struct memclient_alloc_options options;
    struct memclient_name_options name;
    uint32_t nodes[OPEN_NODES_MAX];
    uint32_t weights[OPEN_NODES_MAX];
};
#define ALLOC_ARGUMENTS_INIT                                                         \
    {                                                                                \
        .options = MEMCLIENT_ALLOC_OPTIONS_INIT, .name = MEMCLIENT_NAME_OPTIONS_INIT \
    }

/*
 * (type, size, options, name_options, nodes, weights). False: an exception is set. What `args` has must live as long as
 * the arguments.
 */
bool open_read_alloc(PyObject *args, PyObject **type, struct alloc_arguments *a);
