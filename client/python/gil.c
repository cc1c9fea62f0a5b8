/* SPDX-License-Identifier: Apache-2.0 */
/* See gil.h. */
#include "gil.h"

static __thread struct gil *gil_current;

/* Asked by the library while a call waits. The interpreter runs handlers in its main thread only. */
static bool gil_check_signals(void *data)
{
    struct gil *gil = data;

    PyEval_RestoreThread(gil->thread);
    gil->raised = gil->raised || PyErr_CheckSignals() < 0;
    gil->thread = PyEval_SaveThread();
    return gil->raised;
}

void gil_release(struct gil *gil)
{
    gil->outer = gil_current;
    gil->raised = false;
    gil_current = gil;
    gil->thread = PyEval_SaveThread();
    memclient_set_interrupt(gil_check_signals, gil);
}

void gil_release_quietly(struct gil *gil)
{
    gil->outer = gil_current;
    gil->raised = false;
    gil->thread = PyEval_SaveThread();
    memclient_set_interrupt(NULL, NULL);
}

static int gil_raise(void *data)
{
    PyObject *error = data;

    PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_DECREF(error);
    return -1;
}

void gil_take(struct gil *gil, int r)
{
    PyObject *type, *error, *trace;

    gil_current = gil->outer;
    memclient_set_interrupt(gil->outer ? gil_check_signals : NULL, gil->outer);
    PyEval_RestoreThread(gil->thread);
    /* another exception may be on its way, if a destructor calls */
    if (r < 0 || !gil->raised)
        return;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    if (trace)
        (void)PyException_SetTraceback(error, trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    if (error && Py_AddPendingCall(gil_raise, error) < 0)
        Py_DECREF(error);
}
