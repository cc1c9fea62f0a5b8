/* SPDX-License-Identifier: Apache-2.0 */
/* See shared_buffer.h. */
#include "umf/shared_buffer.h"

#include <stdlib.h>
#include <unistd.h>

#include "umf/area.h"

struct shared_buffer *shared_buffer_new(struct memclient_buffer *handle)
{
    struct shared_buffer *buffer = calloc(1, sizeof(*buffer));

    if (!buffer)
        return NULL;
    buffer->refs = 1;
    buffer->handle = handle;
    buffer->pid = getpid();
    return buffer;
}

void shared_buffer_ref(struct shared_buffer *buffer)
{
    __atomic_fetch_add(&buffer->refs, 1, __ATOMIC_RELAXED);
}

void shared_buffer_unref(struct shared_buffer *buffer)
{
    struct memclient *ctx = memclient_buffer_context(buffer->handle);

    if (__atomic_sub_fetch(&buffer->refs, 1, __ATOMIC_ACQ_REL))
        return;
    if (buffer->pid == getpid()) {
        /* what would keep it although it was freed */
        if (buffer->token_keeps)
            (void)memclient_revoke(ctx, buffer->token);
        if (buffer->name)
            (void)memclient_name_unbind(ctx, buffer->name);
    }
    (void)memclient_reservation_release(buffer->reservation);
    (void)memclient_buffer_unref(buffer->handle);
    free(buffer->token);
    free(buffer->name);
    free(buffer->opened_by);
    free(buffer);
}

/* Only then its pages can go: what others have of it stays as it is. */
static bool is_ours_alone(struct shared_buffer *buffer)
{
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;

    if (!__atomic_load_n(&buffer->may_be_shared, __ATOMIC_RELAXED) && buffer->pid == getpid())
        return true;
    return !memclient_buffer_info(buffer->handle, &info) && info.holds <= 1;
}

void shared_buffer_release(const struct area *taken)
{
    struct shared_buffer *buffer = taken->buffer;

    (void)memclient_unmap(memclient_buffer_context(buffer->handle), (void *)(uintptr_t)taken->start, taken->length);
    if (taken->kind == AREA_ALLOCATED && __atomic_load_n(&buffer->refs, __ATOMIC_RELAXED) > 1 && is_ours_alone(buffer))
        (void)memclient_discard(buffer->handle, taken->offset, taken->length);
    shared_buffer_unref(buffer);
}
