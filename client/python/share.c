/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of a buffer that ask the broker for something: tokens, names, descriptors, publishing. See buffer.h. */
#include "buffer.h"

#include <errno.h>

#include "convert.h"
#include "options.h"

/* What runs without the interpreter's lock. The handle is held, since another thread may close the buffer meanwhile. */
struct share_request {
    struct memclient_buffer *handle;
    struct gil gil;
};

/* False, with an exception set: the buffer is closed, or this object has not all of the rights, whatever the handle may
 * have by another one. Otherwise the lock is released until share_end(). */
static bool share_begin(struct buffer *self, unsigned rights, struct share_request *request)
{
    static const char sentence[] = "this object has not all of the rights that are asked for";

    request->handle = buffer_handle(self);
    if (!request->handle)
        return false;
    if (rights & ~self->rights) {
        memclient_buffer_unref(request->handle);
        errors_refuse(buffer_state(self), EACCES, sentence, "NO_RIGHT");
        return false;
    }
    gil_release(&request->gil);
    return true;
}

/* With what the call returned, which is returned. */
static int share_end(struct share_request *request, int r)
{
    memclient_buffer_unref(request->handle);
    gil_take(&request->gil, r);
    return r;
}

PyObject *buffer_share(PyObject *object, PyObject *dict)
{
    struct buffer *self = (struct buffer *)object;
    struct memclient_share_options options = MEMCLIENT_SHARE_OPTIONS_INIT;
    struct share_request request;
    struct memclient_token token;
    int r;

    if (!convert_to_dict(dict, &dict) || fields_write(options_share, dict, &options))
        return NULL;
    if (!options.rights)
        options.rights = self->rights & (MEMCLIENT_READ | MEMCLIENT_WRITE);
    if (!share_begin(self, options.rights, &request))
        return NULL;
    r = share_end(&request, memclient_share(request.handle, &options, &token));
    return r ? errors_raise(buffer_state(self), r)
             : PyBytes_FromStringAndSize((const char *)token.bytes, sizeof(token.bytes));
}

PyObject *buffer_revoke_tokens(PyObject *object, PyObject *none)
{
    struct buffer *self = (struct buffer *)object;
    struct share_request request;

    if (!share_begin(self, 0, &request))
        return NULL;
    return errors_none(buffer_state(self), share_end(&request, memclient_revoke_all_tokens(request.handle)));
}

PyObject *buffer_bind(PyObject *object, PyObject *args)
{
    struct buffer *self = (struct buffer *)object;
    struct memclient_name_options options = MEMCLIENT_NAME_OPTIONS_INIT;
    struct share_request request;
    const char *name;
    PyObject *dict;

    if (!PyArg_ParseTuple(args, "O&O&", convert_to_text, &name, convert_to_dict, &dict) ||
        fields_write(options_name, dict, &options) || !share_begin(self, 0, &request))
        return NULL;
    return errors_none(buffer_state(self), share_end(&request, memclient_bind_name(request.handle, name, &options)));
}

PyObject *buffer_export_fd(PyObject *object, PyObject *number)
{
    struct buffer *self = (struct buffer *)object;
    struct share_request request;
    unsigned rights, most;
    int fd, r;

    if (!convert_to_unsigned(number, &rights) || !share_begin(self, rights, &request))
        return NULL;
    if (!rights) {
        most = memclient_buffer_flags(request.handle) & MEMCLIENT_BUFFER_PUBLISHED ? MEMCLIENT_READ
                                                                                   : MEMCLIENT_READ | MEMCLIENT_WRITE;
        rights = self->rights & most;
    }
    r = share_end(&request, memclient_export_fd(request.handle, rights, &fd));
    return r ? errors_raise(buffer_state(self), r) : PyLong_FromLong(fd);
}

PyObject *buffer_query(PyObject *object, PyObject *none)
{
    struct buffer *self = (struct buffer *)object;
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    struct share_request request;
    int r;

    if (!share_begin(self, 0, &request))
        return NULL;
    r = share_end(&request, memclient_buffer_query(request.handle, &info));
    return r ? errors_raise(buffer_state(self), r) : fields_read(options_buffer_info, &info);
}

PyObject *buffer_discard(PyObject *object, PyObject *args)
{
    struct buffer *self = (struct buffer *)object;
    struct share_request request;
    uint64_t offset, length;

    if (!PyArg_ParseTuple(args, "O&O&", convert_to_uint64, &offset, convert_to_uint64, &length) ||
        !share_begin(self, MEMCLIENT_WRITE, &request))
        return NULL;
    return errors_none(buffer_state(self), share_end(&request, memclient_discard(request.handle, offset, length)));
}

PyObject *buffer_move(PyObject *object, PyObject *number)
{
    struct buffer *self = (struct buffer *)object;
    struct share_request request;
    unsigned node;

    if (!convert_to_unsigned(number, &node) || !share_begin(self, 0, &request))
        return NULL;
    return errors_none(buffer_state(self), share_end(&request, memclient_move(request.handle, node)));
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
