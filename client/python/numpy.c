/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An allocator for NumPy's arrays (NEP 49): from a size on, an array's memory is a buffer; below it is malloc()'s. An
 * array keeps the handler that its memory is of, so what the handler needs lives as long as the last of them. NumPy's
 * headers are not needed: the structs are those of the NEP, and the functions are found as NumPy's headers find them.
 */
#include "module.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "convert.h"
#include "open.h"

/* Of NumPy's table of functions, from 1.22 on. */
enum { NUMPY_SET_HANDLER = 304 };

struct numpy_allocator {
    void *context;
    void *(*malloc)(void *context, size_t size);
    void *(*calloc)(void *context, size_t n, size_t size);
    void *(*realloc)(void *context, void *old, size_t size);
    void (*free)(void *context, void *memory, size_t size);
};

struct numpy_handler {
    char name[127];
    uint8_t version;
    struct numpy_allocator allocator;
};

struct numpy_context {
    struct numpy_handler handler;
    uint64_t from; /* bytes: less is malloc()'s */
    struct alloc_arguments arguments;
    PyObject *args; /* has what the arguments refer to */
};

/* The buffer that begins at an address, or NULL. */
static struct memclient_buffer *numpy_buffer_at(const void *memory)
{
    struct memclient_address_info info = MEMCLIENT_ADDRESS_INFO_INIT;

    return !memclient_address_query(memory, &info) && !info.offset ? info.buffer : NULL;
}

static void *numpy_malloc(void *data, size_t size)
{
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    const struct numpy_context *context = data;
    struct memclient_buffer *handle;
    void *memory;

    if (size < context->from)
        return malloc(size);
    if (memclient_alloc(NULL, size, &context->arguments.options, &handle))
        return NULL;
    options.flags = MEMCLIENT_MAP_ANYWHERE;
    if (!memclient_map(handle, &options, &memory))
        return memory;
    memclient_buffer_unref(handle);
    return NULL;
}

static void *numpy_calloc(void *data, size_t n, size_t size)
{
    const struct numpy_context *context = data;
    size_t bytes;

    if (__builtin_mul_overflow(n, size, &bytes))
        return NULL;
    /* buffers are zeroed */
    return bytes < context->from ? calloc(n, size) : numpy_malloc(data, bytes);
}

static void numpy_free(void *data, void *memory, size_t size)
{
    struct memclient_buffer *handle = memory ? numpy_buffer_at(memory) : NULL;

    if (!handle) {
        free(memory);
        return;
    }
    (void)memclient_unmap(memclient_buffer_context(handle), memory, memclient_buffer_bytes(handle));
    memclient_buffer_unref(handle);
}

static void *numpy_realloc(void *data, void *old, size_t size)
{
    struct memclient_buffer *handle = old ? numpy_buffer_at(old) : NULL;
    const struct numpy_context *context = data;
    size_t had;
    void *memory;

    /* what malloc() has made stays so: how large it is, it does not tell */
    if (!handle)
        return old ? realloc(old, size) : numpy_malloc(data, size);
    had = memclient_buffer_size(handle);
    memory = size < context->from ? malloc(size) : numpy_malloc(data, size);
    if (memory) {
        memcpy(memory, old, had < size ? had : size);
        numpy_free(data, old, had);
    }
    return memory;
}

static void numpy_free_context(PyObject *capsule)
{
    struct numpy_handler *handler = PyCapsule_GetPointer(capsule, "mem_handler");
    struct numpy_context *context = handler ? handler->allocator.context : NULL;

    if (!context)
        return;
    Py_DECREF(context->args);
    PyMem_Free(context);
}

/* (type, from, options, None, nodes, weights): the handler, a capsule as NumPy wants it. */
static PyObject *numpy_make_handler(PyObject *module, PyObject *args)
{
    struct numpy_context *context = PyMem_Calloc(1, sizeof(*context));
    PyObject *type, *capsule;

    if (!context)
        return PyErr_NoMemory();
    context->arguments = (struct alloc_arguments)ALLOC_ARGUMENTS_INIT;
    if (!open_read_alloc(args, &type, &context->arguments)) {
        PyMem_Free(context);
        return NULL;
    }
    context->from = context->arguments.size;
    context->handler = (struct numpy_handler){
        .name = "memclient",
        .version = 1,
        .allocator = {context, numpy_malloc, numpy_calloc, numpy_realloc, numpy_free},
    };
    capsule = PyCapsule_New(&context->handler, "mem_handler", numpy_free_context);
    if (!capsule) {
        PyMem_Free(context);
        return NULL;
    }
    Py_INCREF(args);
    context->args = args;
    return capsule;
}

/* (NumPy's table, a handler): the former one. */
static PyObject *numpy_set_handler(PyObject *module, PyObject *args)
{
    PyObject *(*set)(PyObject *);
    PyObject *capsule, *handler;
    void **table;

    if (!PyArg_ParseTuple(args, "OO", &capsule, &handler))
        return NULL;
    table = PyCapsule_GetPointer(capsule, NULL);
    if (!table || !PyCapsule_IsValid(handler, "mem_handler"))
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "no handler: %R", handler);
    set = (PyObject * (*)(PyObject *)) table[NUMPY_SET_HANDLER];
    return set(handler);
}

PyMethodDef numpy_functions[] = {
    {"make_numpy_handler", numpy_make_handler, METH_VARARGS,
     "make_numpy_handler(type, size, options, None, nodes, weights)"},
    {"set_numpy_handler", numpy_set_handler, METH_VARARGS, "set_numpy_handler(table, handler)"},
    {NULL, NULL, 0, NULL},
};
