/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that make buffers, each with the class of the object as its first argument, and those on names, tokens and
 * ids that need none.
 */
#include "buffer.h"

#include "convert.h"
#include "open.h"
#include "options.h"

/* ---- allocating -------------------------------------------------------------------------------------------------- */

bool open_read_alloc(PyObject *args, PyObject **type, struct alloc_arguments *a)
{
    PyObject *options, *name_options, *nodes, *weights;
    Py_ssize_t n_nodes, n_weights;

    if (!PyArg_ParseTuple(args, "OO&O&O&OO", type, convert_to_uint64, &a->size, convert_to_dict, &options,
                          convert_to_dict, &name_options, &nodes, &weights) ||
        fields_write(options_alloc, options, &a->options) || fields_write(options_name, name_options, &a->name))
        return false;
    n_nodes = fields_write_list(nodes, a->nodes, OPEN_NODES_MAX);
    n_weights = n_nodes < 0 ? -1 : fields_write_list(weights, a->weights, OPEN_NODES_MAX);
    if (n_weights < 0)
        return false;
    if (n_weights && n_weights != n_nodes) {
        PyErr_Format(PyExc_ValueError, "%zd weights of %zd nodes", n_weights, n_nodes);
        return false;
    }
    a->options.nodes = a->nodes;
    a->options.n_nodes = (size_t)n_nodes;
    a->options.weights = n_weights ? a->weights : NULL;
    a->options.name_options = a->options.name ? &a->name : NULL;
    return true;
}

static PyObject *open_alloc(PyObject *module, PyObject *args)
{
    struct alloc_arguments a = ALLOC_ARGUMENTS_INIT;
    struct memclient_buffer *handle;
    PyObject *type;
    struct gil gil;
    int r;

    if (!open_read_alloc(args, &type, &a) || !buffer_check_type(module, type))
        return NULL;
    gil_release(&gil);
    r = memclient_alloc(NULL, a.size, &a.options, &handle);
    gil_take(&gil, r);
    return r ? errors_raise(module_state(module), r) : buffer_new(module, (PyTypeObject *)type, handle, 0);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static PyObject *open_token(PyObject *module, PyObject *args)
{
    struct memclient_token token;
    struct memclient_buffer *handle;
    PyObject *type;
    unsigned rights;
    struct gil gil;
    int r;

    if (!PyArg_ParseTuple(args, "OO&O&", &type, convert_to_token, &token, convert_to_unsigned, &rights) ||
        !buffer_check_type(module, type))
        return NULL;
    gil_release(&gil);
    r = memclient_open_token(NULL, &token, rights, &handle);
    gil_take(&gil, r);
    return r ? errors_raise(module_state(module), r) : buffer_new(module, (PyTypeObject *)type, handle, rights);
}

static PyObject *open_name(PyObject *module, PyObject *args)
{
    struct memclient_buffer *handle;
    unsigned rights, claim;
    const char *name;
    PyObject *type;
    struct gil gil;
    int r;

    if (!PyArg_ParseTuple(args, "OO&O&O&", &type, convert_to_text, &name, convert_to_unsigned, &rights,
                          convert_to_unsigned, &claim) ||
        !buffer_check_type(module, type))
        return NULL;
    gil_release(&gil);
    r = claim ? memclient_claim_name(NULL, name, rights, claim, &handle)
              : memclient_open_name(NULL, name, rights, &handle);
    gil_take(&gil, r);
    return r ? errors_raise(module_state(module), r) : buffer_new(module, (PyTypeObject *)type, handle, rights);
}

static PyObject *open_id(PyObject *module, PyObject *args)
{
    struct memclient_buffer *handle;
    PyObject *type;
    unsigned rights;
    struct gil gil;
    uint64_t id;
    int r;

    if (!PyArg_ParseTuple(args, "OO&O&", &type, convert_to_uint64, &id, convert_to_unsigned, &rights) ||
        !buffer_check_type(module, type))
        return NULL;
    gil_release(&gil);
    r = memclient_open_id(NULL, id, rights, &handle);
    gil_take(&gil, r);
    return r ? errors_raise(module_state(module), r) : buffer_new(module, (PyTypeObject *)type, handle, rights);
}

static PyObject *open_fd(PyObject *module, PyObject *args)
{
    struct memclient_buffer *handle;
    PyObject *type;
    int fd, adopt, r;
    unsigned rights;
    struct gil gil;

    if (!PyArg_ParseTuple(args, "OiO&p", &type, &fd, convert_to_unsigned, &rights, &adopt) ||
        !buffer_check_type(module, type))
        return NULL;
    gil_release(&gil);
    r = adopt ? memclient_adopt_fd(NULL, fd, &handle) : memclient_import_fd(NULL, fd, &handle);
    gil_take(&gil, r);
    return r ? errors_raise(module_state(module), r) : buffer_new(module, (PyTypeObject *)type, handle, rights);
}

/*
 * (object, offset) of the buffer that is mapped at an address, or None. Whoever asks has a view of that memory, so that
 * it stays.
 */
static PyObject *open_at(PyObject *module, PyObject *args)
{
    struct memclient_address_info info = MEMCLIENT_ADDRESS_INFO_INIT;
    PyObject *type, *buffer;
    unsigned rights;
    uint64_t address;

    if (!PyArg_ParseTuple(args, "OO&", &type, convert_to_uint64, &address) || !buffer_check_type(module, type))
        return NULL;
    if (memclient_address_query((const void *)(uintptr_t)address, &info) || !info.buffer)
        Py_RETURN_NONE;
    rights = memclient_buffer_rights(info.buffer);
    if (!(info.access & MEMCLIENT_WRITE))
        rights &= ~(unsigned)MEMCLIENT_WRITE;
    buffer = buffer_new(module, (PyTypeObject *)type, memclient_buffer_ref(info.buffer), rights);
    return buffer ? Py_BuildValue("NK", buffer, (unsigned long long)info.offset) : NULL;
}

/* ---- names, tokens, ids ------------------------------------------------------------------------------------------ */

static PyObject *unbind_name(PyObject *module, PyObject *text)
{
    const char *name;
    struct gil gil;
    int r;

    if (!convert_to_text(text, &name))
        return NULL;
    gil_release(&gil);
    r = memclient_unbind_name(NULL, name);
    gil_take(&gil, r);
    return errors_none(module_state(module), r);
}

static PyObject *revoke_token(PyObject *module, PyObject *bytes)
{
    struct memclient_token token;
    struct gil gil;
    int r;

    if (!convert_to_token(bytes, &token))
        return NULL;
    gil_release(&gil);
    r = memclient_revoke_token(NULL, &token);
    gil_take(&gil, r);
    return errors_none(module_state(module), r);
}

static PyObject *destroy_id(PyObject *module, PyObject *args)
{
    struct gil gil;
    unsigned flags;
    uint64_t id;
    int r;

    if (!PyArg_ParseTuple(args, "O&O&", convert_to_uint64, &id, convert_to_unsigned, &flags))
        return NULL;
    gil_release(&gil);
    r = memclient_destroy_id(NULL, id, flags);
    gil_take(&gil, r);
    return errors_none(module_state(module), r);
}

PyMethodDef open_functions[] = {
    {"alloc", open_alloc, METH_VARARGS, "alloc(type, size, options, name_options, nodes, weights)"},
    {"open_token", open_token, METH_VARARGS, "open_token(type, token, rights)"},
    {"open_name", open_name, METH_VARARGS, "open_name(type, name, rights, claim)"},
    {"open_id", open_id, METH_VARARGS, "open_id(type, id, rights)"},
    {"open_fd", open_fd, METH_VARARGS, "open_fd(type, fd, rights, adopt)"},
    {"at", open_at, METH_VARARGS, "at(type, address): (object, offset) or None"},
    {"unbind_name", unbind_name, METH_O, "unbind_name(name)"},
    {"revoke_token", revoke_token, METH_O, "revoke_token(token)"},
    {"destroy_id", destroy_id, METH_VARARGS, "destroy_id(id, flags)"},
    {NULL, NULL, 0, NULL},
};
