/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The extension memclient._memclient: libmemclient's native functions as Python sees them, and nothing else.
 *
 * What is a mechanism is here: objects that own handles and mappings, the buffer protocol, giving up the interpreter's
 * lock, turning structs into dictionaries. What is a matter of taste is Python, in the package around it: names and
 * defaults of arguments, classes of errors, pickling. So the functions here take their arguments by position, and
 * programs do not call them.
 *
 * It is compiled for the limited API of Python 3.11, so one file serves that version and all later ones. It stands on
 * the public native API alone, as setup.py builds it against an installed library.
 */
#pragma once

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <memclient/memclient.h>

struct buffer;

/* What a module object has. Each object that belongs to it knows it, and keeps it through its type. */
struct module_state {
    PyObject *error;           /* memclient.errors: makes an exception of (errno, sentence, status) */
    PyTypeObject *buffer_type; /* the base of memclient.Buffer */
    PyTypeObject *heap_type;   /* of memclient.Pool */
    PyTypeObject *block_type;  /* of memclient.Block */
    struct buffer *buffers;    /* all that are open */
    unsigned publishing;       /* calls of publish() under way */
};

static inline struct module_state *module_state(PyObject *module)
{
    return PyModule_GetState(module);
}

/* ---- errors.c ---------------------------------------------------------------------------------------------------- */

/* Raises what the library's call, which has just returned `r` in this thread, has failed with. Returns NULL. */
PyObject *errors_raise(struct module_state *state, int r);
/* The same for what the extension refuses by itself. */
PyObject *errors_refuse(struct module_state *state, int err, const char *sentence, const char *status);
/* None, or raises if r is not 0. */
PyObject *errors_none(struct module_state *state, int r);
extern PyMethodDef errors_functions[];

/* the functions of the other files, and their types */
int buffer_add_type(PyObject *module, struct module_state *state);
int heap_add_type(PyObject *module, struct module_state *state);
int block_add_type(PyObject *module, struct module_state *state);
extern PyMethodDef array_functions[];
extern PyMethodDef open_functions[];
extern PyMethodDef list_functions[];
extern PyMethodDef event_functions[];
extern PyMethodDef heap_functions[];
extern PyMethodDef numpy_functions[];
