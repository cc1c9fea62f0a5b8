/* SPDX-License-Identifier: Apache-2.0 */
/* What IPC memory and interop buffers have in common: mapping another process's buffer and releasing it. See ipc.h. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/steal.h"
#include "hsa/ipc.h"
#include "hsa/memory.h"
#include "hsa/runtime.h"

static struct attachment *by_token; /* hash of IPC memory */

hsa_status_t attachment_map(struct memclient_buffer **buffer, uint64_t allowed, bool alone,
                            struct attachment **attachment)
{
    _cleanup_free_ struct attachment *new = calloc(1, sizeof(*new));
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    void *address;
    int r;

    if (!new)
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    options.flags = MEMCLIENT_MAP_ANYWHERE | (alone ? MEMCLIENT_MAP_ALONE : 0);
    r = memclient_map(*buffer, &options, &address);
    if (r)
        return runtime_status(r);
    address_range_init(&new->range, RANGE_ATTACHMENT, address, memclient_buffer_size(*buffer),
                       memclient_buffer_bytes(*buffer));
    new->allowed = allowed;
    new->refs = 1;
    new->maps = 1;
    new->buffer = steal_ptr(buffer);
    *attachment = steal_ptr(&new);
    return HSA_STATUS_SUCCESS;
}

void attachment_free(struct attachment *attachment, struct memclient *ctx)
{
    memory_release(&attachment->range, attachment->buffer, ctx);
    free(attachment);
}

struct attachment *attachment_find(const struct memclient_token *token)
{
    struct attachment *found;

    HASH_FIND(hh, by_token, token, sizeof(*token), found);
    return found;
}

bool attachment_join(const struct attachment *new, struct attachment **there)
{
    struct attachment *found = range_attachment(address_map_find_base((const void *)(uintptr_t)new->range.start));

    if (!found || found->interop || found->buffer != new->buffer)
        return false;
    found->refs++;
    found->maps++;
    found->allowed |= new->allowed;
    *there = found;
    return true;
}

bool attachment_insert(struct attachment *attachment)
{
    if (!attachment->interop) {
        HASH_ADD(hh, by_token, token, sizeof(attachment->token), attachment);
        if (!attachment->hh.tbl)
            return false;
    }
    address_map_insert(&attachment->range);
    return true;
}

/* With the lock. True if that was the last: it is not in the address map any more. */
static bool attachment_count_down(struct attachment *attachment, struct list *callbacks)
{
    if (--attachment->refs)
        return false;
    address_map_remove(&attachment->range);
    if (!attachment->interop)
        HASH_DELETE(hh, by_token, attachment);
    callbacks_take(&attachment->range, callbacks);
    return true;
}

hsa_status_t attachment_detach(void *ptr, bool interop)
{
    _cleanup_(runtime_leavep) struct memclient *ctx = runtime_enter();
    struct list callbacks = LIST_INIT(callbacks);
    struct attachment *attachment;
    uint64_t bytes = 0;
    bool last, is_joined = false;

    if (!ctx)
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    address_map_lock();
    attachment = range_attachment(address_map_find_base(ptr));
    if (attachment && attachment->interop != interop)
        attachment = NULL;
    last = attachment && attachment_count_down(attachment, &callbacks);
    if (attachment && !last && attachment->maps > attachment->refs) {
        is_joined = true;
        attachment->maps--;
        bytes = attachment->range.bytes;
    }
    address_map_unlock();
    if (!attachment)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    if (is_joined)
        (void)memclient_unmap(ctx, ptr, bytes);
    if (!last)
        return HSA_STATUS_SUCCESS;
    callbacks_run_outside(&callbacks, &ctx);
    attachment_free(attachment, ctx);
    return HSA_STATUS_SUCCESS;
}

void attachments_forget(void)
{
    HASH_CLEAR(hh, by_token);
}
