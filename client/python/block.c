/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks that this process has, or had; see heap.h. */
#include "convert.h"
#include "heap.h"
#include "lent.h"

/* ---- life -------------------------------------------------------------------------------------------------------- */

bool block_check_type(struct module_state *state, PyObject *type)
{
    if (PyType_Check(type) && PyType_IsSubtype((PyTypeObject *)type, state->block_type))
        return true;
    PyErr_Format(PyExc_TypeError, "no class of blocks: %R", type);
    return false;
}

PyObject *block_new(struct heap *heap, PyTypeObject *type, void *address)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct block *self = (struct block *)allocate(type, 0);

    if (!self) {
        (void)memclient_heap_free(heap->handle, address);
        return NULL;
    }
    Py_INCREF((PyObject *)heap);
    self->heap = heap;
    self->address = address;
    self->member = memclient_heap_member(heap->handle);
    self->open = true;
    return (PyObject *)self;
}

/* Frees it, if it is this process's. It makes no call that waits. */
static int block_free(struct block *self)
{
    struct memclient_heap *handle = self->heap->handle ? self->heap->handle : self->heap->left;
    uint64_t member = self->member;

    self->member = 0;
    if (!handle || !member || member != memclient_heap_member(handle))
        return 0;
    return memclient_heap_free(handle, self->address);
}

static void block_dealloc(PyObject *object)
{
    struct block *self = (struct block *)object;
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    PyObject *pool = (PyObject *)self->heap;

    if (pool) {
        (void)block_free(self);
        self->heap->lent -= self->lent;
    }
    release(self);
    Py_XDECREF(pool);
    Py_DECREF(type);
}

static bool block_is_open(const struct block *self)
{
    if (!self->open || !self->heap->handle)
        PyErr_SetString(PyExc_ValueError, self->open ? "the pool is closed" : "the block is closed, or was given away");
    return self->open && self->heap->handle;
}

static PyObject *block_close(PyObject *object, PyObject *none)
{
    struct block *self = (struct block *)object;
    int r;

    if (!self->open)
        Py_RETURN_NONE;
    if (self->views)
        return PyErr_Format(PyExc_BufferError, "cannot free the block: %zd views of its memory exist", self->views);
    self->open = false;
    r = self->lent ? 0 : block_free(self);
    return errors_none(heap_state(self->heap), r);
}

/* (member or 0, whether views may be left): the bytes by which another process takes it. */
static PyObject *block_give(PyObject *object, PyObject *args)
{
    struct block *self = (struct block *)object;
    uint64_t to;
    int moved, r;

    if (!PyArg_ParseTuple(args, "O&p", convert_to_uint64, &to, &moved) || !block_is_open(self))
        return NULL;
    if (self->views && !moved)
        return PyErr_Format(PyExc_BufferError, "cannot give the block away: %zd views of its memory exist",
                            self->views);
    r = memclient_block_give(self->heap->handle, self->address, to, &self->reference);
    if (r)
        return errors_raise(heap_state(self->heap), r);
    self->open = false;
    self->given = true;
    self->member = 0;
    return PyBytes_FromStringAndSize((const char *)&self->reference, sizeof(self->reference));
}

/* Its slab is mapped, so this makes no call. */
static PyObject *block_take_back(PyObject *object, PyObject *none)
{
    struct block *self = (struct block *)object;
    void *address;
    int r;

    if (!self->given || !self->heap->handle) {
        PyErr_SetString(PyExc_ValueError, self->given ? "the pool is closed" : "the block was not given away");
        return NULL;
    }
    r = memclient_block_take(self->heap->handle, &self->reference, &address);
    if (r)
        return errors_raise(heap_state(self->heap), r);
    self->given = false;
    self->open = true;
    self->member = memclient_heap_member(self->heap->handle);
    Py_RETURN_NONE;
}

/* What giving it will return. */
static PyObject *block_prepare(PyObject *object, PyObject *none)
{
    struct block *self = (struct block *)object;
    struct memclient_block reference;
    int r;

    if (!block_is_open(self))
        return NULL;
    r = memclient_block_prepare(self->heap->handle, self->address, &reference);
    return r ? errors_raise(heap_state(self->heap), r)
             : PyBytes_FromStringAndSize((const char *)&reference, sizeof(reference));
}

/* ---- its memory -------------------------------------------------------------------------------------------------- */

static int block_get(PyObject *object, Py_buffer *view, int flags)
{
    struct block *self = (struct block *)object;

    view->obj = NULL;
    if (!block_is_open(self) ||
        PyBuffer_FillInfo(view, object, self->address, (Py_ssize_t)self->heap->block_size, 0, flags))
        return -1;
    self->views++;
    self->heap->views++;
    if (lent_by(flags) && !self->lent) {
        self->lent = true;
        self->heap->lent++;
    }
    return 0;
}

static void block_release(PyObject *object, Py_buffer *view)
{
    struct block *self = (struct block *)object;

    self->views--;
    self->heap->views--;
}

static Py_ssize_t block_length(PyObject *object)
{
    const struct block *self = (const struct block *)object;

    return block_is_open(self) ? (Py_ssize_t)self->heap->block_size : -1;
}

/* ---- the type ---------------------------------------------------------------------------------------------------- */

static PyObject *block_get_closed(PyObject *object, void *none)
{
    const struct block *self = (const struct block *)object;

    return PyBool_FromLong(!self->open || !self->heap->handle);
}

static PyObject *block_get_address(PyObject *object, void *none)
{
    return PyLong_FromVoidPtr(((const struct block *)object)->address);
}

static PyObject *block_get_pool(PyObject *object, void *none)
{
    PyObject *pool = (PyObject *)((const struct block *)object)->heap;

    Py_INCREF(pool);
    return pool;
}

static PyGetSetDef block_properties[] = {
    {"closed", block_get_closed, NULL, "True once it was freed or given away.", NULL},
    {"address", block_get_address, NULL, "Where it is, in every process that has the pool.", NULL},
    {"pool", block_get_pool, NULL, "Whose block it is.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef block_methods[] = {
    {"close", block_close, METH_NOARGS,
     "close()\n--\n\nFrees the block.\n\n"
     "BufferError: a memoryview, an array or another view of its memory exists. Closing twice is allowed."},
    {"prepare", block_prepare, METH_NOARGS,
     "prepare()\n--\n\nThe 16 bytes that give() will return, for who writes them down first.\n\n"
     "A process that dies in between has had the block, so it is free, and taking it raises Stale; one that dies\n"
     "afterwards has left no block that nobody knows of. Errors are those of give()."},
    {"take_back", block_take_back, METH_NOARGS,
     "take_back()\n--\n\nMakes a block that was given away this process's again, if nobody has taken it.\n\n"
     "For who learns that the receiver has died, or that a pickle of an array was lost: array.block.take_back().\n"
     "Stale: somebody has taken it. ValueError: it was not given away by this object, or its pool is closed."},
    {"_give", block_give, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int block_add_type(PyObject *module, struct module_state *state)
{
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, block_dealloc},
        {Py_tp_methods, block_methods},
        {Py_tp_getset, block_properties},
        {Py_sq_length, block_length},
        {Py_bf_getbuffer, block_get},
        {Py_bf_releasebuffer, block_release},
        {0, NULL},
    };
    static PyType_Spec spec = {
        .name = "memclient._memclient.Block",
        .basicsize = sizeof(struct block),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .slots = slots,
    };

    state->block_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return state->block_type ? PyModule_AddType(module, state->block_type) : -1;
}
