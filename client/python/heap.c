/* SPDX-License-Identifier: Apache-2.0 */
/* Heaps that are open here; see heap.h. */
#include "heap.h"

#include <errno.h>

#include "convert.h"
#include "open.h"
#include "options.h"

/* ---- life -------------------------------------------------------------------------------------------------------- */

bool heap_enter(struct heap *self)
{
    if (!self->handle) {
        PyErr_SetString(PyExc_ValueError, "the pool is closed");
        return false;
    }
    self->calls++;
    return true;
}

void heap_leave(struct heap *self)
{
    self->calls--;
}

static void heap_close_handle(struct memclient_heap *handle)
{
    struct gil gil;

    gil_release_quietly(&gil);
    memclient_heap_close(handle);
    gil_take(&gil, 0);
}

static void heap_dealloc(PyObject *object)
{
    struct heap *self = (struct heap *)object;
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    PyObject *module = self->module;

    if (self->handle)
        heap_close_handle(self->handle);
    if (self->left)
        heap_close_handle(self->left);
    release(self);
    Py_XDECREF(module);
    Py_DECREF(type);
}

/* NULL, or an exception that says who uses it. */
static PyObject *heap_refuse_end(const struct heap *self, const char *what)
{
    if (self->views)
        return PyErr_Format(PyExc_BufferError, "cannot %s the pool: %zd views of its memory exist", what, self->views);
    if (self->calls)
        return PyErr_Format(PyExc_BufferError, "cannot %s the pool: another thread uses it", what);
    return NULL;
}

static PyObject *heap_close(PyObject *object, PyObject *none)
{
    struct heap *self = (struct heap *)object;
    struct memclient_heap *handle = self->handle;

    if (!handle)
        Py_RETURN_NONE;
    if (self->views || self->calls)
        return heap_refuse_end(self, "close");
    self->handle = NULL;
    if (self->lent)
        self->left = handle;
    else
        heap_close_handle(handle);
    Py_RETURN_NONE;
}

static PyObject *heap_destroy(PyObject *object, PyObject *none)
{
    struct heap *self = (struct heap *)object;
    struct memclient_heap *handle;
    struct gil gil;
    int r;

    if (self->views || self->calls)
        return heap_refuse_end(self, "destroy");
    if (self->lent)
        return PyErr_Format(PyExc_BufferError, "cannot destroy the pool: %zd blocks may be in use", self->lent);
    if (!heap_enter(self))
        return NULL;
    handle = self->handle;
    /* nobody else begins a call */
    self->handle = NULL;
    gil_release(&gil);
    r = memclient_heap_destroy(handle);
    gil_take(&gil, r);
    heap_leave(self);
    if (r)
        self->handle = handle;
    return errors_none(heap_state(self), r);
}

/* ---- its blocks -------------------------------------------------------------------------------------------------- */

static PyObject *heap_alloc(PyObject *object, PyObject *type)
{
    struct heap *self = (struct heap *)object;
    PyObject *block = NULL;
    struct gil gil;
    void *address;
    int r;

    if (!block_check_type(heap_state(self), type) || !heap_enter(self))
        return NULL;
    gil_release(&gil);
    r = memclient_heap_alloc(self->handle, self->block_size, &address);
    gil_take(&gil, r);
    block = r ? errors_raise(heap_state(self), r) : block_new(self, (PyTypeObject *)type, address);
    heap_leave(self);
    return block;
}

static PyObject *heap_take(PyObject *object, PyObject *args)
{
    struct heap *self = (struct heap *)object;
    struct memclient_block reference;
    PyObject *type, *block = NULL;
    struct gil gil;
    void *address;
    int r;

    if (!PyArg_ParseTuple(args, "OO&", &type, convert_to_block, &reference) ||
        !block_check_type(heap_state(self), type) || !heap_enter(self))
        return NULL;
    gil_release(&gil);
    r = memclient_block_take(self->handle, &reference, &address);
    gil_take(&gil, r);
    block = r ? errors_raise(heap_state(self), r) : block_new(self, (PyTypeObject *)type, address);
    heap_leave(self);
    return block;
}

/* ---- the heap as a whole ----------------------------------------------------------------------------------------- */

static PyObject *heap_share(PyObject *object, PyObject *dict)
{
    struct memclient_share_options options = MEMCLIENT_SHARE_OPTIONS_INIT;
    struct heap *self = (struct heap *)object;
    struct memclient_token token;
    struct gil gil;
    int r;

    if (!convert_to_dict(dict, &dict) || fields_write(options_share, dict, &options) || !heap_enter(self))
        return NULL;
    gil_release(&gil);
    r = memclient_heap_share(self->handle, &options, &token);
    gil_take(&gil, r);
    heap_leave(self);
    return r ? errors_raise(heap_state(self), r)
             : PyBytes_FromStringAndSize((const char *)token.bytes, sizeof(token.bytes));
}

static PyObject *heap_sweep(PyObject *object, PyObject *all)
{
    struct heap *self = (struct heap *)object;
    int trim = PyObject_IsTrue(all), r;
    struct gil gil;

    if (trim < 0 || !heap_enter(self))
        return NULL;
    gil_release(&gil);
    r = trim ? memclient_heap_trim(self->handle) : memclient_heap_sweep(self->handle);
    gil_take(&gil, r);
    heap_leave(self);
    return errors_none(heap_state(self), r);
}

static PyObject *heap_query(PyObject *object, PyObject *none)
{
    struct memclient_heap_info info = MEMCLIENT_HEAP_INFO_INIT;
    struct heap *self = (struct heap *)object;
    struct gil gil;
    int r;

    if (!heap_enter(self))
        return NULL;
    gil_release(&gil);
    r = memclient_heap_query(self->handle, &info);
    gil_take(&gil, r);
    heap_leave(self);
    return r ? errors_raise(heap_state(self), r) : fields_read(options_heap_info, &info);
}

static PyObject *heap_get_closed(PyObject *object, void *none)
{
    return PyBool_FromLong(!((const struct heap *)object)->handle);
}

static PyObject *heap_get_block_size(PyObject *object, void *none)
{
    return PyLong_FromUnsignedLongLong(((const struct heap *)object)->block_size);
}

static PyObject *heap_get_member(PyObject *object, void *none)
{
    struct heap *self = (struct heap *)object;
    PyObject *number;

    if (!heap_enter(self))
        return NULL;
    number = PyLong_FromUnsignedLongLong(memclient_heap_member(self->handle));
    heap_leave(self);
    return number;
}

/* ---- making and opening ------------------------------------------------------------------------------------------ */

static bool heap_check_type(PyObject *module, PyObject *type)
{
    if (PyType_Check(type) && PyType_IsSubtype((PyTypeObject *)type, module_state(module)->heap_type))
        return true;
    PyErr_Format(PyExc_TypeError, "no class of pools: %R", type);
    return false;
}

/* Takes the handle. */
static PyObject *heap_new(PyObject *module, PyObject *type, struct memclient_heap *handle)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot((PyTypeObject *)type, Py_tp_alloc);
    struct memclient_heap_info info = MEMCLIENT_HEAP_INFO_INIT;
    struct heap *self = (struct heap *)allocate((PyTypeObject *)type, 0);
    int r;

    if (!self) {
        heap_close_handle(handle);
        return NULL;
    }
    Py_INCREF(module);
    self->module = module;
    self->handle = handle;
    r = memclient_heap_query(handle, &info);
    if (!r && info.n_block_sizes == 1) {
        self->block_size = info.block_sizes[0];
        return (PyObject *)self;
    }
    if (r)
        errors_raise(module_state(module), r);
    else
        errors_refuse(module_state(module), EINVAL, "the heap has blocks of several sizes: a pool has one", NULL);
    Py_DECREF(self);
    return NULL;
}

/* The first six arguments are those of alloc(), with the size of a block as its size. */
static PyObject *heap_create(PyObject *module, PyObject *args)
{
    struct memclient_heap_options options = MEMCLIENT_HEAP_OPTIONS_INIT;
    struct alloc_arguments a = ALLOC_ARGUMENTS_INIT;
    PyObject *type, *dict, *first = PyTuple_GetSlice(args, 0, 6);
    struct memclient_heap *handle;
    struct gil gil;
    bool good;
    int r;

    if (!first)
        return NULL;
    good = open_read_alloc(first, &type, &a) && heap_check_type(module, type) && PyTuple_Size(args) == 7 &&
           convert_to_dict(PyTuple_GetItem(args, 6), &dict) && !fields_write(options_heap, dict, &options);
    Py_DECREF(first);
    if (!good)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "create_heap() takes 7 arguments");
    options.block_sizes = &a.size;
    options.n_block_sizes = 1;
    options.memory = &a.options;
    options.name_options = options.name ? &a.name : NULL;
    gil_release(&gil);
    r = memclient_heap_create(NULL, &options, &handle);
    gil_take(&gil, r);
    return r ? errors_raise(module_state(module), r) : heap_new(module, type, handle);
}

static PyObject *heap_open_token(PyObject *module, PyObject *args)
{
    struct memclient_token token;
    struct memclient_heap *handle;
    PyObject *type;
    struct gil gil;
    int r;

    if (!PyArg_ParseTuple(args, "OO&", &type, convert_to_token, &token) || !heap_check_type(module, type))
        return NULL;
    gil_release(&gil);
    r = memclient_heap_open_token(NULL, &token, &handle);
    gil_take(&gil, r);
    return r ? errors_raise(module_state(module), r) : heap_new(module, type, handle);
}

static PyObject *heap_open_name(PyObject *module, PyObject *args)
{
    struct memclient_heap *handle;
    const char *name;
    PyObject *type;
    struct gil gil;
    int r;

    if (!PyArg_ParseTuple(args, "OO&", &type, convert_to_text, &name) || !heap_check_type(module, type))
        return NULL;
    gil_release(&gil);
    r = memclient_heap_open_name(NULL, name, &handle);
    gil_take(&gil, r);
    return r ? errors_raise(module_state(module), r) : heap_new(module, type, handle);
}

PyMethodDef heap_functions[] = {
    {"create_heap", heap_create, METH_VARARGS,
     "create_heap(type, block_size, options, name_options, nodes, weights, heap_options)"},
    {"open_heap_token", heap_open_token, METH_VARARGS, "open_heap_token(type, token)"},
    {"open_heap_name", heap_open_name, METH_VARARGS, "open_heap_name(type, name)"},
    {NULL, NULL, 0, NULL},
};

/* ---- the type ---------------------------------------------------------------------------------------------------- */

static PyGetSetDef heap_properties[] = {
    {"closed", heap_get_closed, NULL, "True once this process has left it.", NULL},
    {"block_size", heap_get_block_size, NULL, "Bytes of a block.", NULL},
    {"member", heap_get_member, NULL,
     "Who this process is, for Block.give(); no other one ever is. 0 in a child of fork() before its first call.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef heap_methods[] = {
    {"close", heap_close, METH_NOARGS,
     "close()\n--\n\nLeaves the pool: the blocks that this process has are free again.\n\n"
     "BufferError: a memoryview, an array or another view of a block exists. Closing twice is allowed."},
    {"_destroy", heap_destroy, METH_NOARGS, NULL},
    {"_alloc", heap_alloc, METH_O, NULL},
    {"_take", heap_take, METH_VARARGS, NULL},
    {"_share", heap_share, METH_O, NULL},
    {"_sweep", heap_sweep, METH_O, NULL},
    {"_query", heap_query, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int heap_add_type(PyObject *module, struct module_state *state)
{
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, heap_dealloc},
        {Py_tp_methods, heap_methods},
        {Py_tp_getset, heap_properties},
        {0, NULL},
    };
    static PyType_Spec spec = {
        .name = "memclient._memclient.Heap",
        .basicsize = sizeof(struct heap),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .slots = slots,
    };

    state->heap_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return state->heap_type ? PyModule_AddType(module, state->heap_type) : -1;
}
