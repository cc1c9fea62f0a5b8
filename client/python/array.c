/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an array lies, and whether a geometry stays within its buffer. Pickling and loading do this each time, when the
 * processor's caches have seldom anything of this code in them: a few functions here are there sooner than the bytecode
 * and objects that the same takes in Python.
 */
#include "module.h"

/* ---- where it lies ----------------------------------------------------------------------------------------------- */

/* Of what is usual: an array in one piece that can be written to, and whose buffer can. */
static PyObject *array_locate(const Py_buffer *view)
{
    struct memclient_address_info info = MEMCLIENT_ADDRESS_INFO_INIT;
    uint64_t size;

    if (view->readonly || !view->len || !PyBuffer_IsContiguous(view, 'C') ||
        memclient_address_query(view->buf, &info) || !info.buffer || !(info.access & MEMCLIENT_WRITE) ||
        !(memclient_buffer_rights(info.buffer) & MEMCLIENT_WRITE) ||
        memclient_buffer_flags(info.buffer) & MEMCLIENT_BUFFER_PUBLISHED)
        Py_RETURN_NONE;
    size = memclient_buffer_size(info.buffer);
    if (info.offset > size || (uint64_t)view->len > size - info.offset)
        Py_RETURN_NONE;
    return Py_BuildValue("KKK", (unsigned long long)memclient_buffer_id(info.buffer),
                         (unsigned long long)(uintptr_t)view->buf, (unsigned long long)info.offset);
}

/*
 * The buffer's number, the address, and the offset in the buffer. None of what Python has to look at: what lies
 * elsewhere or is unusual, and what NumPy does not show by the buffer protocol, as it does not arrays of some types.
 */
static PyObject *array_at(PyObject *module, PyObject *array)
{
    PyObject *found;
    Py_buffer view;

    if (PyObject_GetBuffer(array, &view, PyBUF_STRIDES)) {
        if (!PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_BufferError))
            return NULL;
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    found = array_locate(&view);
    PyBuffer_Release(&view);
    return found;
}

/* ---- a geometry -------------------------------------------------------------------------------------------------- */

static const char array_foreign[] = "this is no pickle of memclient's";

static bool array_refuse(PyObject *error, const char *sentence)
{
    PyErr_SetString(error, sentence);
    return false;
}

static bool array_read_integer(PyObject *object, long long *ret)
{
    int overflow = 0;

    if (!PyLong_Check(object))
        return array_refuse(PyExc_TypeError, array_foreign);
    *ret = PyLong_AsLongLongAndOverflow(object, &overflow);
    return !overflow || array_refuse(PyExc_ValueError, "a shape, strides or an offset that no buffer can have");
}

/* `low` and `high` become where the lowest and the highest element begin with this dimension. False: an exception is
 * set. */
static bool array_add_dimension(PyObject *number, PyObject *stride, long long *low, long long *high)
{
    long long n, step, way;

    if (!array_read_integer(number, &n) || !array_read_integer(stride, &step))
        return false;
    if (n < 0)
        return array_refuse(PyExc_ValueError, "no shape has a negative number");
    if (n <= 1)
        return true;
    if (!__builtin_mul_overflow(step, n - 1, &way) &&
        !(way < 0 ? __builtin_add_overflow(*low, way, low) : __builtin_add_overflow(*high, way, high)))
        return true;
    return array_refuse(PyExc_ValueError, "a shape and strides that no buffer can have");
}

static PyObject *array_check_extent(PyObject *module, PyObject *args)
{
    PyObject *offset, *shape, *strides, *itemsize, *size;
    long long low, high, item, bytes;
    Py_ssize_t n;

    if (!PyArg_ParseTuple(args, "OOOOO", &offset, &shape, &strides, &itemsize, &size) ||
        !array_read_integer(offset, &low) || !array_read_integer(itemsize, &item) || !array_read_integer(size, &bytes))
        return NULL;
    /* a class of tuples may show NumPy other numbers than these */
    n = PyTuple_CheckExact(shape) && PyTuple_CheckExact(strides) ? PyTuple_Size(shape) : -1;
    if (n < 0 || n != PyTuple_Size(strides)) {
        (void)(n < 0 ? array_refuse(PyExc_TypeError, array_foreign)
                     : array_refuse(PyExc_ValueError, "there are not as many strides as dimensions"));
        return NULL;
    }
    high = low;
    for (Py_ssize_t i = 0; i < n; i++)
        if (!array_add_dimension(PyTuple_GetItem(shape, i), PyTuple_GetItem(strides, i), &low, &high))
            return NULL;
    if (low < 0 || __builtin_add_overflow(high, item, &high) || high > bytes)
        return PyErr_Format(PyExc_ValueError, "bytes %lld to %lld are not within a buffer of %lld bytes", low, high,
                            bytes);
    Py_RETURN_NONE;
}

PyMethodDef array_functions[] = {
    {"array_at", array_at, METH_O, "array_at(array): (number of its buffer, address, offset) or None"},
    {"check_extent", array_check_extent, METH_VARARGS, "check_extent(offset, shape, strides, itemsize, size)"},
    {NULL, NULL, 0, NULL},
};
