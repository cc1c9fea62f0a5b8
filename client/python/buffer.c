/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that own handles and mappings, and the buffer protocol; see buffer.h. */
#include "buffer.h"

#include "lent.h"

#include <unistd.h>

/* ---- life -------------------------------------------------------------------------------------------------------- */

static void buffer_link(struct buffer *self)
{
    struct module_state *state = buffer_state(self);

    self->next = state->buffers;
    self->link = &state->buffers;
    if (self->next)
        self->next->link = &self->next;
    state->buffers = self;
}

static void buffer_unlink(struct buffer *self)
{
    *self->link = self->next;
    if (self->next)
        self->next->link = self->link;
}

bool buffer_check_type(PyObject *module, PyObject *type)
{
    if (PyType_Check(type) && PyType_IsSubtype((PyTypeObject *)type, module_state(module)->buffer_type))
        return true;
    PyErr_Format(PyExc_TypeError, "no class of buffers: %R", type);
    return false;
}

PyObject *buffer_new(PyObject *module, PyTypeObject *type, struct memclient_buffer *handle, unsigned rights)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct buffer *self = (struct buffer *)allocate(type, 0);
    unsigned all = memclient_buffer_rights(handle);

    if (!self) {
        memclient_buffer_unref(handle);
        return NULL;
    }
    Py_INCREF(module);
    self->module = module;
    self->handle = handle;
    self->rights = rights ? rights & all : all;
    /* who may write may read */
    if (self->rights & MEMCLIENT_WRITE)
        self->rights |= MEMCLIENT_READ;
    self->fd = -1;
    buffer_link(self);
    return (PyObject *)self;
}

/* Closes it, but for what was lent. */
static void buffer_close_handle(struct buffer *self)
{
    buffer_unlink(self);
    if (self->fd >= 0)
        (void)close(self->fd);
    self->fd = -1;
    self->left = self->handle;
    self->handle = NULL;
}

/* May wait for the broker, if very many releases were made while it is away. */
static void buffer_give_back(struct buffer *self)
{
    struct memclient_buffer *handle = self->left;
    void *address = self->address;
    struct gil gil;

    self->left = NULL;
    self->address = NULL;
    gil_release_quietly(&gil);
    if (address)
        (void)memclient_unmap(memclient_buffer_context(handle), address, memclient_buffer_bytes(handle));
    memclient_buffer_unref(handle);
    gil_take(&gil, 0);
}

static void buffer_dealloc(PyObject *object)
{
    struct buffer *self = (struct buffer *)object;
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    PyObject *module = self->module;

    if (self->handle)
        buffer_close_handle(self);
    if (self->left)
        buffer_give_back(self);
    release(self);
    Py_XDECREF(module);
    Py_DECREF(type);
}

static PyObject *buffer_close(PyObject *object, PyObject *none)
{
    struct buffer *self = (struct buffer *)object;

    if (self->views)
        return PyErr_Format(PyExc_BufferError, "cannot close the buffer: %zd views of its memory exist", self->views);
    if (self->handle)
        buffer_close_handle(self);
    if (self->left && !self->lent)
        buffer_give_back(self);
    Py_RETURN_NONE;
}

/* ---- its memory -------------------------------------------------------------------------------------------------- */

/* Without the lock of the interpreter. */
static int buffer_map_handle(struct memclient_buffer *handle, unsigned rights, void **address, bool *writable)
{
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    struct memclient_address_info info = MEMCLIENT_ADDRESS_INFO_INIT;
    int r;

    /* whoever may write gets what the buffer allows: it may be published */
    options.access = rights & MEMCLIENT_WRITE ? 0 : MEMCLIENT_READ;
    options.flags = MEMCLIENT_MAP_ANYWHERE;
    r = memclient_map(handle, &options, address);
    if (r)
        return r;
    *writable = rights & MEMCLIENT_WRITE && !memclient_address_query(*address, &info) && info.access & MEMCLIENT_WRITE;
    return 0;
}

int buffer_map(struct buffer *self)
{
    struct memclient_buffer *handle;
    struct gil gil;
    void *address;
    bool writable;
    int r;

    if (self->address)
        return 0;
    handle = buffer_handle(self);
    if (!handle)
        return -1;
    gil_release(&gil);
    r = buffer_map_handle(handle, self->rights, &address, &writable);
    gil_take(&gil, r);
    if (r) {
        errors_raise(buffer_state(self), r);
    } else if (self->handle == handle && !self->address) {
        self->address = address;
        self->writable = writable;
    } else {
        /* another thread has mapped it as well, or closed it */
        (void)memclient_unmap(memclient_buffer_context(handle), address, memclient_buffer_bytes(handle));
        r = buffer_is_open(self) ? 0 : -1;
    }
    memclient_buffer_unref(handle);
    return r ? -1 : 0;
}

/* Is it about to be made read-only? */
static bool buffer_is_publishing(const struct buffer *self)
{
    struct module_state *state = buffer_state(self);

    if (state->publishing)
        for (const struct buffer *other = state->buffers; other; other = other->next)
            if (other->publishing && other->handle == self->handle)
                return true;
    return false;
}

static int buffer_get(PyObject *object, Py_buffer *view, int flags)
{
    struct buffer *self = (struct buffer *)object;
    bool writable;

    view->obj = NULL;
    if (!buffer_is_open(self) || buffer_map(self))
        return -1;
    writable = self->writable && !buffer_is_publishing(self);
    if (!writable && flags & PyBUF_WRITABLE) {
        PyErr_SetString(PyExc_BufferError, "the buffer is read-only");
        return -1;
    }
    if (PyBuffer_FillInfo(view, object, self->address, (Py_ssize_t)memclient_buffer_size(self->handle), !writable,
                          flags))
        return -1;
    self->views++;
    self->writable_views += writable;
    self->lent |= lent_by(flags);
    return 0;
}

static void buffer_release(PyObject *object, Py_buffer *view)
{
    struct buffer *self = (struct buffer *)object;

    self->views--;
    self->writable_views -= !view->readonly;
}

/* ---- properties -------------------------------------------------------------------------------------------------- */

static Py_ssize_t buffer_length(PyObject *object)
{
    const struct buffer *self = (const struct buffer *)object;

    return buffer_is_open(self) ? (Py_ssize_t)memclient_buffer_size(self->handle) : -1;
}

static PyObject *buffer_get_closed(PyObject *object, void *none)
{
    return PyBool_FromLong(!((const struct buffer *)object)->handle);
}

/* of the library's functions that say a number */
static PyObject *buffer_get_number(PyObject *object, void *function)
{
    const struct buffer *self = (const struct buffer *)object;
    uint64_t (*const *number)(const struct memclient_buffer *) = function;

    return buffer_is_open(self) ? PyLong_FromUnsignedLongLong((*number)(self->handle)) : NULL;
}

static PyObject *buffer_get_rights(PyObject *object, void *none)
{
    const struct buffer *self = (const struct buffer *)object;

    return buffer_is_open(self) ? PyLong_FromUnsignedLong(self->rights) : NULL;
}

static PyObject *buffer_get_flags(PyObject *object, void *none)
{
    const struct buffer *self = (const struct buffer *)object;

    return buffer_is_open(self) ? PyLong_FromUnsignedLong(memclient_buffer_flags(self->handle)) : NULL;
}

static PyObject *buffer_get_readonly(PyObject *object, void *none)
{
    const struct buffer *self = (const struct buffer *)object;

    if (!buffer_is_open(self))
        return NULL;
    if (self->address)
        return PyBool_FromLong(!self->writable);
    return PyBool_FromLong(!(self->rights & MEMCLIENT_WRITE) ||
                           memclient_buffer_flags(self->handle) & MEMCLIENT_BUFFER_PUBLISHED);
}

static PyObject *buffer_get_home(PyObject *object, void *none)
{
    const struct buffer *self = (const struct buffer *)object;

    return buffer_is_open(self) ? PyLong_FromVoidPtr(memclient_buffer_home(self->handle)) : NULL;
}

static PyObject *buffer_get_address(PyObject *object, void *none)
{
    struct buffer *self = (struct buffer *)object;

    return buffer_is_open(self) && !buffer_map(self) ? PyLong_FromVoidPtr(self->address) : NULL;
}

/* One descriptor for the object's life, as files have it. */
static PyObject *buffer_fileno(PyObject *object, PyObject *none)
{
    struct buffer *self = (struct buffer *)object;
    PyObject *number;

    if (!buffer_is_open(self))
        return NULL;
    if (self->fd < 0) {
        PyObject *rights = PyLong_FromLong(0);
        int fd;

        number = rights ? buffer_export_fd(object, rights) : NULL;
        Py_XDECREF(rights);
        if (!number)
            return NULL;
        fd = (int)PyLong_AsLong(number);
        Py_DECREF(number);
        if (!self->handle || self->fd >= 0) {
            /* another thread was as quick, or has closed it */
            (void)close(fd);
            if (!buffer_is_open(self))
                return NULL;
        } else {
            self->fd = fd;
        }
    }
    return PyLong_FromLong(self->fd);
}

/* ---- the type ---------------------------------------------------------------------------------------------------- */

static uint64_t (*const number_id)(const struct memclient_buffer *) = memclient_buffer_id;
static uint64_t (*const number_size)(const struct memclient_buffer *) = memclient_buffer_size;
static uint64_t (*const number_bytes)(const struct memclient_buffer *) = memclient_buffer_bytes;
static uint64_t (*const number_granule)(const struct memclient_buffer *) = memclient_buffer_granule;
#define NUMBER(name) (void *)(uintptr_t)&number_##name

static PyGetSetDef buffer_properties[] = {
    {"closed", buffer_get_closed, NULL, "True once it was given back.", NULL},
    {"id", buffer_get_number, NULL, "The broker's number of the buffer, never used again.", NUMBER(id)},
    {"size", buffer_get_number, NULL, "Bytes, as asked for.", NUMBER(size)},
    {"bytes", buffer_get_number, NULL, "Bytes that are charged: the size in whole granules.", NUMBER(bytes)},
    {"granule", buffer_get_number, NULL, "Bytes; the unit of its pages.", NUMBER(granule)},
    {"_rights", buffer_get_rights, NULL, NULL, NULL},
    {"_flags", buffer_get_flags, NULL, NULL, NULL},
    {"readonly", buffer_get_readonly, NULL, "True if this object cannot be used to write to the memory.", NULL},
    {"home", buffer_get_home, NULL, "The address that the buffer has in every process, 0 if none.", NULL},
    {"address", buffer_get_address, NULL,
     "Where it is mapped in this process: at its home, unless something else is there.\n\n"
     "The address is good until close().",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef buffer_methods[] = {
    {"close", buffer_close, METH_NOARGS,
     "close()\n--\n\nGives the buffer back: unmaps it here, and frees it unless others have it.\n\n"
     "BufferError: a memoryview, an array or another view of its memory exists. Closing twice is allowed.\n\n"
     "What has taken the memory without a view, as numpy.ndarray(buffer=), torch.frombuffer() and file.readinto() do,\n"
     "is not seen: such memory stays until the object ends, too."},
    {"fileno", buffer_fileno, METH_NOARGS,
     "fileno()\n--\n\nA descriptor of the memory, which is open as long as this object.\n\n"
     "Whoever gets it, by SCM_RIGHTS or as a child, may map it or memclient.open() it."},
    {"_share", buffer_share, METH_O, NULL},
    {"_revoke_tokens", buffer_revoke_tokens, METH_NOARGS, NULL},
    {"_publish", buffer_publish, METH_O, NULL},
    {"_bind", buffer_bind, METH_VARARGS, NULL},
    {"_export_fd", buffer_export_fd, METH_O, NULL},
    {"_query", buffer_query, METH_NOARGS, NULL},
    {"_discard", buffer_discard, METH_VARARGS, NULL},
    {"_move", buffer_move, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int buffer_add_type(PyObject *module, struct module_state *state)
{
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, buffer_dealloc},
        {Py_tp_methods, buffer_methods},
        {Py_tp_getset, buffer_properties},
        {Py_sq_length, buffer_length},
        {Py_bf_getbuffer, buffer_get},
        {Py_bf_releasebuffer, buffer_release},
        {0, NULL},
    };
    static PyType_Spec spec = {
        .name = "memclient._memclient.Buffer",
        .basicsize = sizeof(struct buffer),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .slots = slots,
    };

    state->buffer_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return state->buffer_type ? PyModule_AddType(module, state->buffer_type) : -1;
}
