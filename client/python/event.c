/* SPDX-License-Identifier: Apache-2.0 */
/* Events: taken one by one. The package waits for them by polling the descriptor. */
#include "gil.h"

#include <errno.h>

#include "convert.h"
#include "fields.h"

static const struct field event_fields[] = {
    FIELD(UINT, memclient_event, kind),       FIELD(UINT, memclient_event, level),
    FIELD(UINT64, memclient_event, buffer),   FIELD(BOOL, memclient_event, bound),
    FIELD(CHARS, memclient_event, pool),      FIELD(CHARS, memclient_event, name),
    FIELD(UINT64, memclient_event, session),  FIELD(UINT, memclient_event, uid),
    FIELD(INT, memclient_event, pid),         FIELD(UINT, memclient_event, end),
    FIELD(INT, memclient_event, exit_status), {NULL, FIELD_BOOL, 0, 0},
};

static PyObject *event_subscribe(PyObject *module, PyObject *number)
{
    struct gil gil;
    unsigned mask;
    int r;

    if (!convert_to_unsigned(number, &mask))
        return NULL;
    gil_release(&gil);
    r = memclient_event_subscribe(NULL, mask);
    gil_take(&gil, r);
    return errors_none(module_state(module), r);
}

static PyObject *event_subscribe_buffer(PyObject *module, PyObject *args)
{
    struct gil gil;
    uint64_t id;
    unsigned mask;
    int r;

    if (!PyArg_ParseTuple(args, "O&O&:event_subscribe_buffer", convert_to_uint64, &id, convert_to_unsigned, &mask))
        return NULL;
    gil_release(&gil);
    r = memclient_event_subscribe_buffer(NULL, id, mask);
    gil_take(&gil, r);
    return errors_none(module_state(module), r);
}

static PyObject *event_subscribe_name(PyObject *module, PyObject *args)
{
    struct gil gil;
    const char *name;
    unsigned mask;
    int r;

    if (!PyArg_ParseTuple(args, "O&O&:event_subscribe_name", convert_to_text, &name, convert_to_unsigned, &mask))
        return NULL;
    gil_release(&gil);
    r = memclient_event_subscribe_name(NULL, name, mask);
    gil_take(&gil, r);
    return errors_none(module_state(module), r);
}

static PyObject *event_fd(PyObject *module, PyObject *none)
{
    struct gil gil;
    int fd, r;

    gil_release(&gil);
    r = memclient_event_fd(NULL, &fd);
    gil_take(&gil, r);
    return r ? errors_raise(module_state(module), r) : PyLong_FromLong(fd);
}

/* None: there is no event now. */
static PyObject *event_next(PyObject *module, PyObject *none)
{
    struct memclient_event event = MEMCLIENT_EVENT_INIT;
    struct gil gil;
    int r;

    gil_release(&gil);
    r = memclient_event_next(NULL, &event);
    gil_take(&gil, r == -EAGAIN ? 0 : r);
    if (r == -EAGAIN)
        Py_RETURN_NONE;
    return r ? errors_raise(module_state(module), r) : fields_read(event_fields, &event);
}

PyMethodDef event_functions[] = {
    {"event_subscribe", event_subscribe, METH_O, "event_subscribe(mask)"},
    {"event_subscribe_buffer", event_subscribe_buffer, METH_VARARGS, "event_subscribe_buffer(id, mask)"},
    {"event_subscribe_name", event_subscribe_name, METH_VARARGS, "event_subscribe_name(name, mask)"},
    {"event_fd", event_fd, METH_NOARGS, "event_fd()"},
    {"event_next", event_next, METH_NOARGS, "event_next(): a dict, or None if there is none now"},
    {NULL, NULL, 0, NULL},
};
