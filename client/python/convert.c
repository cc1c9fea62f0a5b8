/* SPDX-License-Identifier: Apache-2.0 */
/* See convert.h. */
#include "convert.h"

#include <limits.h>
#include <string.h>

#include <memclient/heap.h>

int convert_to_uint64(PyObject *object, void *result)
{
    PyObject *index = PyNumber_Index(object);
    unsigned long long number;

    if (!index)
        return 0;
    number = PyLong_AsUnsignedLongLong(index);
    Py_DECREF(index);
    if (PyErr_Occurred()) {
        PyErr_Format(PyExc_OverflowError, "%R is no number from 0 to 2**64 - 1", object);
        return 0;
    }
    *(uint64_t *)result = number;
    return 1;
}

int convert_to_unsigned(PyObject *object, void *result)
{
    uint64_t number;

    if (!convert_to_uint64(object, &number))
        return 0;
    if (number > UINT_MAX) {
        PyErr_Format(PyExc_OverflowError, "%R is no number from 0 to 2**32 - 1", object);
        return 0;
    }
    *(unsigned *)result = (unsigned)number;
    return 1;
}

static int convert_to_bytes(PyObject *object, void *result, size_t size, const char *what)
{
    Py_buffer view;

    if (PyObject_GetBuffer(object, &view, PyBUF_SIMPLE))
        return 0;
    if (view.len != (Py_ssize_t)size) {
        PyErr_Format(PyExc_ValueError, "a %s has %zu bytes, not %zd", what, size, view.len);
        PyBuffer_Release(&view);
        return 0;
    }
    memcpy(result, view.buf, size);
    PyBuffer_Release(&view);
    return 1;
}

int convert_to_token(PyObject *object, void *result)
{
    return convert_to_bytes(object, result, sizeof(struct memclient_token), "token");
}

int convert_to_block(PyObject *object, void *result)
{
    return convert_to_bytes(object, result, sizeof(struct memclient_block), "reference of a block");
}

int convert_to_text(PyObject *object, void *result)
{
    const char *text;
    Py_ssize_t n;

    if (object == Py_None) {
        *(const char **)result = NULL;
        return 1;
    }
    if (!PyUnicode_Check(object)) {
        PyErr_Format(PyExc_TypeError, "not a str: %R", object);
        return 0;
    }
    text = PyUnicode_AsUTF8AndSize(object, &n);
    if (!text)
        return 0;
    if (strlen(text) != (size_t)n) {
        PyErr_SetString(PyExc_ValueError, "a NUL in a str");
        return 0;
    }
    *(const char **)result = text;
    return 1;
}

int convert_to_dict(PyObject *object, void *result)
{
    if (object != Py_None && !PyDict_Check(object)) {
        PyErr_Format(PyExc_TypeError, "not a dict: %R", object);
        return 0;
    }
    *(PyObject **)result = object == Py_None ? NULL : object;
    return 1;
}
