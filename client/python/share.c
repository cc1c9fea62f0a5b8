/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of a buffer that ask the broker for something: tokens, names, descriptors, publishing. See buffer.h. */
#include "buffer.h"

#include <errno.h>

#include "convert.h"
#include "options.h"

/* Not more than this object may, whatever the handle may by another one. */
static bool share_may(struct buffer *self, unsigned rights)
{
    static const char sentence[] = "this object has not all of the rights that are asked for";

    if (!(rights & ~self->rights))
        return true;
    errors_refuse(buffer_state(self), EACCES, sentence, "NO_RIGHT");
    return false;
}

PyObject *buffer_share(PyObject *object, PyObject *dict)
{
    struct buffer *self = (struct buffer *)object;
    struct memclient_share_options options = MEMCLIENT_SHARE_OPTIONS_INIT;
    struct memclient_buffer *handle;
    struct memclient_token token;
    struct gil gil;
    int r;

    if (!convert_to_dict(dict, &dict) || fields_write(options_share, dict, &options))
        return NULL;
    handle = buffer_handle(self);
    if (!handle)
        return NULL;
    if (!options.rights)
        options.rights = self->rights & (MEMCLIENT_READ | MEMCLIENT_WRITE);
    if (!share_may(self, options.rights)) {
        memclient_buffer_unref(handle);
        return NULL;
    }
    gil_release(&gil);
    r = memclient_share(handle, &options, &token);
    memclient_buffer_unref(handle);
    gil_take(&gil, r);
    return r ? errors_raise(buffer_state(self), r)
             : PyBytes_FromStringAndSize((const char *)token.bytes, sizeof(token.bytes));
}

PyObject *buffer_revoke_tokens(PyObject *object, PyObject *none)
{
    struct buffer *self = (struct buffer *)object;
    struct memclient_buffer *handle = buffer_handle(self);
    struct gil gil;
    int r;

    if (!handle)
        return NULL;
    gil_release(&gil);
    r = memclient_buffer_revoke_tokens(handle);
    memclient_buffer_unref(handle);
    gil_take(&gil, r);
    return errors_none(buffer_state(self), r);
}

PyObject *buffer_bind(PyObject *object, PyObject *args)
{
    struct buffer *self = (struct buffer *)object;
    struct memclient_name_options options = MEMCLIENT_NAME_OPTIONS_INIT;
    struct memclient_buffer *handle;
    const char *name;
    PyObject *dict;
    struct gil gil;
    int r;

    if (!PyArg_ParseTuple(args, "O&O&", convert_to_text, &name, convert_to_dict, &dict) ||
        fields_write(options_name, dict, &options))
        return NULL;
    handle = buffer_handle(self);
    if (!handle)
        return NULL;
    gil_release(&gil);
    r = memclient_bind_name(handle, name, &options);
    memclient_buffer_unref(handle);
    gil_take(&gil, r);
    return errors_none(buffer_state(self), r);
}

PyObject *buffer_export_fd(PyObject *object, PyObject *number)
{
    struct buffer *self = (struct buffer *)object;
    struct memclient_buffer *handle;
    struct gil gil;
    unsigned rights;
    int fd, r;

    if (!convert_to_unsigned(number, &rights) || !share_may(self, rights))
        return NULL;
    handle = buffer_handle(self);
    if (!handle)
        return NULL;
    if (!rights) {
        rights = self->rights & (MEMCLIENT_READ | MEMCLIENT_WRITE);
        if (memclient_buffer_flags(handle) & MEMCLIENT_BUFFER_PUBLISHED)
            rights = MEMCLIENT_READ;
    }
    gil_release(&gil);
    r = memclient_export_fd(handle, rights, &fd);
    memclient_buffer_unref(handle);
    gil_take(&gil, r);
    return r ? errors_raise(buffer_state(self), r) : PyLong_FromLong(fd);
}

PyObject *buffer_query(PyObject *object, PyObject *none)
{
    struct buffer *self = (struct buffer *)object;
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    struct memclient_buffer *handle = buffer_handle(self);
    struct gil gil;
    int r;

    if (!handle)
        return NULL;
    gil_release(&gil);
    r = memclient_buffer_query(handle, &info);
    memclient_buffer_unref(handle);
    gil_take(&gil, r);
    return r ? errors_raise(buffer_state(self), r) : fields_read(options_buffer_info, &info);
}

PyObject *buffer_discard(PyObject *object, PyObject *args)
{
    struct buffer *self = (struct buffer *)object;
    struct memclient_buffer *handle;
    uint64_t offset, length;
    struct gil gil;
    int r;

    if (!PyArg_ParseTuple(args, "O&O&", convert_to_uint64, &offset, convert_to_uint64, &length) ||
        !share_may(self, MEMCLIENT_WRITE))
        return NULL;
    handle = buffer_handle(self);
    if (!handle)
        return NULL;
    gil_release(&gil);
    r = memclient_discard(handle, offset, length);
    memclient_buffer_unref(handle);
    gil_take(&gil, r);
    return errors_none(buffer_state(self), r);
}

PyObject *buffer_move(PyObject *object, PyObject *number)
{
    struct buffer *self = (struct buffer *)object;
    struct memclient_buffer *handle;
    struct gil gil;
    unsigned node;
    int r;

    if (!convert_to_unsigned(number, &node))
        return NULL;
    handle = buffer_handle(self);
    if (!handle)
        return NULL;
    gil_release(&gil);
    r = memclient_move(handle, node);
    memclient_buffer_unref(handle);
    gil_take(&gil, r);
    return errors_none(buffer_state(self), r);
}

/* ---- publishing -------------------------------------------------------------------------------------------------- */

/* What this process has of the memory that can be written to. */
static Py_ssize_t publish_count_views(const struct buffer *self)
{
    Py_ssize_t n = 0;

    for (const struct buffer *other = buffer_state(self)->buffers; other; other = other->next)
        n += other->handle == self->handle ? other->writable_views : 0;
    return n;
}

/* Other objects of this handle see no more than the kernel allows from now on. */
static void publish_note(const struct buffer *self, const struct memclient_buffer *handle)
{
    for (struct buffer *other = buffer_state(self)->buffers; other; other = other->next)
        if (other->handle == handle)
            other->writable = false;
}

PyObject *buffer_publish(PyObject *object, PyObject *number)
{
    struct buffer *self = (struct buffer *)object;
    struct module_state *state;
    struct memclient_buffer *handle;
    Py_ssize_t views;
    struct gil gil;
    unsigned flags;
    int r;

    if (!convert_to_unsigned(number, &flags))
        return NULL;
    handle = buffer_handle(self);
    if (!handle)
        return NULL;
    views = flags & MEMCLIENT_PUBLISH_FUTURE_ONLY ? 0 : publish_count_views(self);
    if (views) {
        memclient_buffer_unref(handle);
        return PyErr_Format(PyExc_BufferError, "cannot publish the buffer: %zd writable views of its memory exist",
                            views);
    }
    state = buffer_state(self);
    self->publishing++;
    state->publishing++;
    gil_release(&gil);
    r = memclient_publish(handle, flags);
    gil_take(&gil, r);
    state->publishing--;
    self->publishing--;
    if (!r && !(flags & MEMCLIENT_PUBLISH_FUTURE_ONLY))
        publish_note(self, handle);
    memclient_buffer_unref(handle);
    return errors_none(state, r);
}
