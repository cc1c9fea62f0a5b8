/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles of shared memory for other processes. They come from anywhere, so nothing in them is trusted. The broker
 * checks the token's secret, and the range is checked against the buffer.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <memclient/umf/umf/providers/provider_memoryd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "umf/area.h"
#include "umf/check.h"
#include "umf/closed.h"
#include "umf/shared.h"

#define MAGIC UINT32_C(0x3148534d) /* "MSH1" */

struct shared_handle {
    struct check check;
    struct memclient_token token;
    uint64_t offset; /* in the buffer */
    uint64_t length;
    uint64_t maker; /* the provider that made it, and may take it back */
};

_Static_assert(sizeof(struct shared_handle) == SHARED_HANDLE_SIZE, "a handle has this size everywhere");

DEFINE_CLEANUP(struct shared_buffer *, shared_buffer_unref);
DEFINE_CLEANUP(struct memclient_buffer *, memclient_buffer_unref);

static bool handle_read(struct shared_handle *handle, const void *data)
{
    return check_read(handle, sizeof(*handle), MAGIC, data);
}

void shared_make_handle(const struct memclient_token *token, uint64_t offset, uint64_t length, uint64_t maker,
                        void *data)
{
    struct shared_handle handle = {.token = *token, .offset = offset, .length = length, .maker = maker};

    check_seal(&handle, sizeof(handle), MAGIC);
    memcpy(data, &handle, sizeof(handle));
}

/* ---- giving one -------------------------------------------------------------------------------------------------- */

/* Copies the buffer's token, which the first call makes. If two threads make it at once, one wins. */
static int token_of(const struct shared *shared, struct shared_buffer *buffer, struct memclient_token *token)
{
    struct memclient_share_options options = MEMCLIENT_SHARE_OPTIONS_INIT;
    struct memclient_token *now = __atomic_load_n(&buffer->token, __ATOMIC_ACQUIRE);
    _cleanup_free_ struct memclient_token *new = NULL;
    int r;

    if (now) {
        *token = *now;
        return 0;
    }
    new = malloc(sizeof(*new));
    if (!new)
        return -ENOMEM;
    options.rights = shared->rights;
    options.expiry_ms = shared->keep_ms;
    options.flags = shared->keep_ms ? MEMCLIENT_TOKEN_KEEPING : 0;
    __atomic_store_n(&buffer->may_be_shared, true, __ATOMIC_RELAXED);
    r = memclient_share(buffer->handle, &options, new);
    if (r)
        return r;
    *token = *new;
    if (__atomic_compare_exchange_n(&buffer->token, &now, new, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        buffer->token_keeps = shared->keep_ms;
        new = NULL;
    } else {
        (void)memclient_revoke_token(memclient_buffer_context(buffer->handle), new);
        *token = *now;
    }
    return 0;
}

static int handle_get(const struct shared *shared, const void *ptr, size_t size, void *data)
{
    _cleanup_(shared_buffer_unrefp) struct shared_buffer *buffer = NULL;
    struct memclient_token token;
    struct area area;
    uint64_t offset;
    int r;

    if (!data || !size || !area_is_one(shared, (uintptr_t)ptr, size) || !area_find(shared, ptr, &area))
        return -EFAULT;
    buffer = area.buffer;
    offset = area.offset + ((uintptr_t)ptr - area.start);
    if (offset % memclient_buffer_granule(buffer->handle))
        return -EFAULT;
    r = token_of(shared, buffer, &token);
    if (!r)
        shared_make_handle(&token, offset, size, shared->maker, data);
    return r;
}

umf_result_t umfMemorydProviderHandle(const struct memclient_token *token, size_t offset, size_t length,
                                      void *providerIpcData)
{
    size_t end;

    if (!token || !length || !providerIpcData || !checked_add_size(offset, length, &end))
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    shared_make_handle(token, offset, length, 0, providerIpcData);
    return UMF_RESULT_SUCCESS;
}

/* The token stays with the buffer. */
static int handle_put(const struct shared *shared, const void *data)
{
    struct shared_handle handle;

    return handle_read(&handle, data) && handle.maker == shared->maker ? 0 : -EBADMSG;
}

/* ---- using one --------------------------------------------------------------------------------------------------- */

/* The length of the handle's part in whole granules; 0 if the buffer has no such part. */
static uint64_t handle_length(const struct shared_handle *handle, const struct memclient_buffer *buffer)
{
    uint64_t granule = memclient_buffer_granule(buffer), bytes = memclient_buffer_bytes(buffer);

    if (handle->offset % granule || handle->offset >= bytes || !handle->length ||
        handle->length > bytes - handle->offset)
        return 0;
    return (handle->length + granule - 1) / granule * granule;
}

/* Maps the part at its home, so that pointers in it hold, or anywhere. Other openers in the process share that mapping;
 * but allocations do not, since their addresses are known as such, nor does a mapping with a protection of its own. */
static int map_part(const struct shared *shared, struct memclient_buffer *buffer, uint64_t offset, uint64_t length,
                    void **ptr)
{
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;

    options.offset = offset;
    options.length = length;
    options.flags = MEMCLIENT_MAP_ANYWHERE;
    if (shared->protection || area_is_allocated((uintptr_t)memclient_buffer_home(buffer) + offset, length))
        options.flags |= MEMCLIENT_MAP_ALONE;
    options.access = shared->access;
    return memclient_map(buffer, &options, ptr);
}

/* Takes a closed mapping of just this handle. */
static bool handle_reopen(const struct shared *shared, const struct shared_handle *handle, void **ptr)
{
    struct area area;

    if (!closed_take(shared, handle, &area))
        return false;
    if (area_add(&area)) {
        shared_buffer_release(&area);
        return false;
    }
    *ptr = (void *)(uintptr_t)area.start;
    return true;
}

static int handle_open(struct shared *shared, const void *data, void **ptr)
{
    _cleanup_(memclient_buffer_unrefp) struct memclient_buffer *opened = NULL;
    _cleanup_(shared_buffer_unrefp) struct shared_buffer *buffer = NULL;
    struct shared_handle handle;
    uint64_t length;
    void *at;
    int r;

    if (!ptr || !handle_read(&handle, data))
        return -EBADMSG;
    if (handle_reopen(shared, &handle, ptr))
        return 0;
    r = memclient_open_token(shared->ctx, &handle.token, 0, &opened);
    if (r)
        return r;
    closed_release_buffer(memclient_buffer_id(opened));
    length = handle_length(&handle, opened);
    if (!length)
        return -EBADMSG;
    buffer = shared_buffer_new(opened);
    if (!buffer)
        return -ENOMEM;
    opened = NULL;
    buffer->opened_by = malloc(sizeof(handle));
    if (buffer->opened_by)
        memcpy(buffer->opened_by, &handle, sizeof(handle));
    r = map_part(shared, buffer->handle, handle.offset, length, &at);
    if (!r)
        r = shared_note(shared, AREA_OPENED, at, length, handle.offset, buffer);
    if (r)
        return r;
    buffer = NULL;
    *ptr = at;
    return 0;
}

static void handle_close(const struct area *area)
{
    if (!area->buffer->opened_by || !closed_put(area))
        shared_buffer_release(area);
}

umf_result_t shared_handle_result(int r)
{
    switch (-r) {
    case 0:
        return UMF_RESULT_SUCCESS;
    case EBADMSG: /* not a handle */
    case EFAULT:  /* not our memory */
    case EREMOTE: /* of another broker */
    case ESTALE:  /* its memory is gone */
    case EKEYEXPIRED:
    case EKEYREVOKED:
    case EKEYREJECTED:
    case EACCES: /* not for this user */
    case EINVAL:
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    case ENOMEM:
    case EDQUOT:
    case EMFILE:
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    default:
        return UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC;
    }
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

/* Private memory has no handles. Programs written for upstream rely on its own result for that. */
static umf_result_t handle_refuse(const struct shared *shared)
{
    return profile_is_upstream(shared->profile) ? UMF_RESULT_ERROR_INVALID_ARGUMENT : UMF_RESULT_ERROR_NOT_SUPPORTED;
}

umf_result_t shared_get_ipc_handle_size(void *provider, size_t *size)
{
    const struct shared *shared = provider;

    if (!size)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    if (shared->release_private && !profile_is_upstream(shared->profile))
        return UMF_RESULT_ERROR_NOT_SUPPORTED;
    *size = SHARED_HANDLE_SIZE;
    return UMF_RESULT_SUCCESS;
}

umf_result_t shared_get_ipc_handle(void *provider, const void *ptr, size_t size, void *data)
{
    const struct shared *shared = provider;

    return shared->release_private ? handle_refuse(shared) : shared->result_of(handle_get(shared, ptr, size, data));
}

umf_result_t shared_put_ipc_handle(void *provider, void *data)
{
    const struct shared *shared = provider;

    return shared->release_private ? handle_refuse(shared) : shared->result_of(handle_put(shared, data));
}

umf_result_t shared_open_ipc_handle(void *provider, void *data, void **ptr)
{
    struct shared *shared = provider;

    return shared->release_private ? handle_refuse(shared) : shared->result_of(handle_open(shared, data, ptr));
}

/* The size is ignored, since not every caller knows it. */
umf_result_t shared_close_ipc_handle(void *provider, void *ptr, size_t size)
{
    const struct shared *shared = provider;
    struct area area;

    if (shared->release_private)
        return handle_refuse(shared);
    if (!ptr)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    if (!area_take_opened(shared, (uintptr_t)ptr, &area))
        return profile_for_unknown(shared->profile);
    handle_close(&area);
    return UMF_RESULT_SUCCESS;
}
