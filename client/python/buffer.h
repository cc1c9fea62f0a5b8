/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base of memclient.Buffer: a handle, and a mapping once its address is wanted.
 *
 * Views. What takes the memory by the buffer protocol keeps the object, and with it the mapping; close() is refused
 * meanwhile, as mmap's is. Of memory that was lent (lent.h) no view is left that says whether it is still in use, so
 * close() leaves the mapping to the end of the object. So nothing is ever unmapped under an array. For the same reason
 * publish() is refused while there is a writable view, by any object of this process, of the memory: the library would
 * make it read-only, and the next write end the process.
 *
 * Threads. The interpreter's lock guards the object. A call that gives it up works on a reference of its own to the
 * handle, so another thread may close the object meanwhile.
 *
 * An object that is all zeros, as object.__new__() makes one, is one that is closed.
 */
#pragma once

#include "gil.h"

struct buffer {
    PyObject_HEAD PyObject *module;  /* keeps the state, also while the interpreter ends */
    struct memclient_buffer *handle; /* NULL: closed */
    struct memclient_buffer *left;   /* what was closed while it was lent */
    unsigned rights;                 /* of this object; the handle may have more */
    void *address;                   /* NULL: not mapped */
    bool writable;                   /* what is mapped is */
    bool lent;
    int fd; /* of fileno(); -1 = none yet */
    Py_ssize_t views;
    Py_ssize_t writable_views;
    unsigned publishing;         /* calls under way */
    struct buffer *next, **link; /* in state->buffers */
};

/* An object of a class that is memclient.Buffer or made of it. Takes the handle, also on failure. rights 0 = all. */
PyObject *buffer_new(PyObject *module, PyTypeObject *type, struct memclient_buffer *handle, unsigned rights);

/* Is it such a class? Else an exception. */
bool buffer_check_type(PyObject *module, PyObject *type);

static inline struct module_state *buffer_state(const struct buffer *self)
{
    return module_state(self->module);
}

/* False: it is closed, and an exception is set. */
static inline bool buffer_is_open(const struct buffer *self)
{
    if (!self->handle)
        PyErr_SetString(PyExc_ValueError, "the buffer is closed");
    return self->handle;
}

/* A reference to the handle for one call, or NULL and an exception if it is closed. */
static inline struct memclient_buffer *buffer_handle(const struct buffer *self)
{
    return buffer_is_open(self) ? memclient_buffer_ref(self->handle) : NULL;
}

/* Maps it, if it is not. 0, or -1 and an exception. */
int buffer_map(struct buffer *self);

/* share.c: methods */
PyObject *buffer_share(PyObject *self, PyObject *options);
PyObject *buffer_revoke_tokens(PyObject *self, PyObject *none);
PyObject *buffer_publish(PyObject *self, PyObject *flags);
PyObject *buffer_bind(PyObject *self, PyObject *args);
PyObject *buffer_export_fd(PyObject *self, PyObject *rights);
PyObject *buffer_query(PyObject *self, PyObject *none);
PyObject *buffer_discard(PyObject *self, PyObject *args);
PyObject *buffer_move(PyObject *self, PyObject *node);
