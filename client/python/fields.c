/* SPDX-License-Identifier: Apache-2.0 */
/* See fields.h. */
#include "fields.h"

#include <string.h>

#include "convert.h"

_Static_assert(sizeof(size_t) == sizeof(uint64_t), "a size_t is read and written as a uint64_t");
_Static_assert(sizeof(pid_t) == sizeof(int) && sizeof(uid_t) == sizeof(unsigned), "ids are of 32 bits");

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* What another program has chosen may be no UTF-8: such bytes become U+FFFD. */
static PyObject *fields_read_text(const char *text)
{
    return PyUnicode_DecodeUTF8(text ? text : "", text ? (Py_ssize_t)strlen(text) : 0, "replace");
}

static PyObject *fields_read_list(const void *items, size_t n, size_t size)
{
    PyObject *list = PyTuple_New((Py_ssize_t)n);

    for (size_t i = 0; list && i < n; i++) {
        PyObject *item = PyLong_FromUnsignedLongLong(size == sizeof(uint64_t) ? ((const uint64_t *)items)[i]
                                                                              : ((const uint32_t *)items)[i]);

        if (!item || PyTuple_SetItem(list, (Py_ssize_t)i, item)) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

static PyObject *fields_read_one(const struct field *field, const char *record)
{
    const void *at = record + field->offset;
    const void *count = record + field->count;

    switch (field->type) {
    case FIELD_BOOL:
        return PyBool_FromLong(*(const bool *)at);
    case FIELD_UINT:
        return PyLong_FromUnsignedLong(*(const unsigned *)at);
    case FIELD_INT:
        return PyLong_FromLong(*(const int *)at);
    case FIELD_UINT64:
        return PyLong_FromUnsignedLongLong(*(const uint64_t *)at);
    case FIELD_TEXT:
        return fields_read_text(*(const char *const *)at);
    case FIELD_CHARS:
        return fields_read_text(at);
    case FIELD_UINTS:
        return fields_read_list(*(const uint32_t *const *)at, *(const size_t *)count, sizeof(uint32_t));
    case FIELD_ARRAY:
        return fields_read_list(at, *(const uint32_t *)count, sizeof(uint32_t));
    case FIELD_ARRAY64:
        return fields_read_list(at, *(const uint32_t *)count, sizeof(uint64_t));
    }
    return NULL;
}

PyObject *fields_read(const struct field *fields, const void *record)
{
    PyObject *dict = PyDict_New();

    for (const struct field *field = fields; dict && field->name; field++) {
        PyObject *value = fields_read_one(field, record);
        int r = value ? PyDict_SetItemString(dict, field->name, value) : -1;

        Py_XDECREF(value);
        if (r) {
            Py_DECREF(dict);
            return NULL;
        }
    }
    return dict;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static int fields_write_one(const struct field *field, PyObject *value, char *record)
{
    void *at = record + field->offset;
    long number;

    switch (field->type) {
    case FIELD_BOOL:
        number = PyObject_IsTrue(value);
        *(bool *)at = number > 0;
        return number < 0 ? -1 : 0;
    case FIELD_UINT:
        return convert_to_unsigned(value, at) ? 0 : -1;
    case FIELD_INT:
        number = PyLong_AsLong(value);
        if (PyErr_Occurred())
            return -1;
        if (number < 0 || number > INT_MAX) {
            PyErr_Format(PyExc_OverflowError, "%s is out of range: %ld", field->name, number);
            return -1;
        }
        *(int *)at = (int)number;
        return 0;
    case FIELD_UINT64:
        return convert_to_uint64(value, at) ? 0 : -1;
    case FIELD_TEXT:
        return convert_to_text(value, at) ? 0 : -1;
    case FIELD_CHARS:
    case FIELD_UINTS:
    case FIELD_ARRAY:
    case FIELD_ARRAY64:
        break;
    }
    PyErr_Format(PyExc_TypeError, "%s cannot be set", field->name);
    return -1;
}

int fields_write(const struct field *fields, PyObject *dict, void *record)
{
    PyObject *key, *value;
    Py_ssize_t position = 0;

    while (dict && PyDict_Next(dict, &position, &key, &value)) {
        const struct field *field = fields;

        while (field->name && !(PyUnicode_Check(key) && !PyUnicode_CompareWithASCIIString(key, field->name)))
            field++;
        if (!field->name) {
            PyErr_Format(PyExc_TypeError, "no such option: %R", key);
            return -1;
        }
        if (fields_write_one(field, value, record))
            return -1;
    }
    return 0;
}

Py_ssize_t fields_write_list(PyObject *sequence, uint32_t *items, Py_ssize_t max)
{
    Py_ssize_t n;

    if (sequence == Py_None)
        return 0;
    n = PySequence_Size(sequence);
    if (n > max) {
        PyErr_Format(PyExc_ValueError, "%zd numbers are more than %zd", n, max);
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);
        unsigned number;
        int ok = item && convert_to_unsigned(item, &number);

        Py_XDECREF(item);
        if (!ok)
            return -1;
        items[i] = number;
    }
    return n;
}
