/* SPDX-License-Identifier: Apache-2.0 */
/* Failures of the library become exceptions. Which class stands for what is decided in memclient/errors.py. */
#include "module.h"

#include <string.h>

PyObject *errors_refuse(struct module_state *state, int err, const char *sentence, const char *status)
{
    PyObject *text = PyUnicode_DecodeUTF8(sentence, (Py_ssize_t)strlen(sentence), "replace");
    /* the interpreter is ending if there is no function any more */
    PyObject *function = state->error ? state->error : PyExc_OSError;
    PyObject *error = text ? PyObject_CallFunction(function, "iOz", err, text, status) : NULL;

    Py_XDECREF(text);
    if (error)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    return NULL;
}

PyObject *errors_raise(struct module_state *state, int r)
{
    unsigned status = memclient_error_status();

    /* a signal's handler has raised, and that has ended the call */
    if (PyErr_Occurred())
        return NULL;
    return errors_refuse(state, -r, memclient_error(), status ? memclient_status_name(status) : NULL);
}

PyObject *errors_none(struct module_state *state, int r)
{
    if (r)
        return errors_raise(state, r);
    Py_RETURN_NONE;
}

static PyObject *errors_set(PyObject *module, PyObject *function)
{
    struct module_state *state = module_state(module);
    PyObject *former = state->error;

    if (!PyCallable_Check(function))
        return PyErr_Format(PyExc_TypeError, "not callable: %R", function);
    Py_INCREF(function);
    state->error = function;
    Py_XDECREF(former);
    Py_RETURN_NONE;
}

PyMethodDef errors_functions[] = {
    {"set_error", errors_set, METH_O, "set_error(function): makes exceptions of (errno, sentence, status or None)"},
    {NULL, NULL, 0, NULL},
};
