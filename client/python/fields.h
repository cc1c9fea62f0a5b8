/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's structs as dictionaries, by tables: fields_read() makes one of what the library has filled in, and
 * fields_write() fills in the options that are in one. A field that the library gets needs a line, and no code.
 */
#pragma once

#include "module.h"

enum field_type {
    FIELD_BOOL,   /* bool */
    FIELD_UINT,   /* unsigned, uint32_t, uid_t, gid_t */
    FIELD_INT,    /* pid_t */
    FIELD_UINT64, /* uint64_t, size_t */
    FIELD_TEXT,   /* const char *; written, it lives as long as the dictionary */
    FIELD_CHARS,  /* char[], read only */
    FIELD_UINTS,  /* const uint32_t *, with `count`; read only */
    FIELD_ARRAY,  /* uint32_t[], with a uint32_t `count`; read only */
    FIELD_ARRAY64 /* uint64_t[], likewise */
};

struct field {
    const char *name; /* NULL ends the table */
    enum field_type type;
    size_t offset;
    size_t count; /* where the number of items is: a size_t, or as above */
};

#define FIELD(type, of, member)                               \
    {                                                         \
#member, FIELD_##type, offsetof(struct of, member), 0 \
    }
#define FIELD_LIST(type, of, member, count_member)                                            \
    {                                                                                         \
#member, FIELD_##type, offsetof(struct of, member), offsetof(struct of, count_member) \
    }

/* A new dictionary, or NULL and an exception. */
PyObject *fields_read(const struct field *fields, const void *record);

/* Sets what `dict` has; NULL has nothing. 0, or -1 and an exception, which a name that is in no table is as well. */
int fields_write(const struct field *fields, PyObject *dict, void *record);

/*
 * A sequence of integers, or None = none, into `items`, which has room for `max`. Returns their number, or -1 and an
 * exception.
 */
Py_ssize_t fields_write_list(PyObject *sequence, uint32_t *items, Py_ssize_t max);
