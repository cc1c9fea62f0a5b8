/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bases of memclient.Pool and memclient.Block: a heap that this process has open, and a block that it has, or had.
 *
 * A block keeps its heap, and views keep their block. So nothing is unmapped under an array, and a block is not free as
 * long as something here can show what it has: its object frees it when the last view has gone, unless it was given
 * away. What takes the memory without keeping a view (lent.h) is reckoned to use it as long as the object lives.
 *
 * A child made by fork() has none of its parent's blocks: their objects are there, and free nothing.
 */
#pragma once

#include "gil.h"

#include <memclient/heap.h>

struct heap {
    PyObject_HEAD PyObject *module;
    struct memclient_heap *handle; /* NULL: closed */
    struct memclient_heap *left;   /* what was closed while blocks were lent */
    uint64_t block_size;
    Py_ssize_t calls; /* under way */
    Py_ssize_t views; /* of its blocks */
    Py_ssize_t lent;  /* blocks */
};

struct block {
    PyObject_HEAD struct heap *heap;
    void *address;
    uint64_t member; /* whose it is; 0: given away, or free */
    bool open;
    bool given; /* away, as: */
    struct memclient_block reference;
    bool lent;
    Py_ssize_t views;
};

static inline struct module_state *heap_state(const struct heap *self)
{
    return module_state(self->module);
}

/* A call is under way, which close() does not disturb. False: it is closed, and an exception is set. */
bool heap_enter(struct heap *self);
void heap_leave(struct heap *self);

/* block.c: an object of a class made of memclient.Block. It has the block, which is freed on failure. */
PyObject *block_new(struct heap *heap, PyTypeObject *type, void *address);
bool block_check_type(struct module_state *state, PyObject *type);
