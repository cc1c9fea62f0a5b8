/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IPC memory: the handle of an allocation, attaching and detaching.
 *
 * A handle is a token of the broker's. It is made when it is first asked for and then kept with the allocation, since
 * programs compare handles to know what they have attached already. As with every token, a stale, revoked or forged one
 * is refused at once, and its bytes never stand for anything else.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <memclient/hsa/hsa/hsa_ext_amd.h>

#include "base/align.h"
#include "base/cleanup.h"
#include "hsa/ipc.h"
#include "hsa/memory.h"
#include "hsa/runtime.h"

_Static_assert(sizeof(hsa_amd_ipc_memory_t) == sizeof(struct memclient_token), "a handle is a token");

hsa_status_t ipc_status(int r)
{
    switch (-r) {
    case EBADMSG:
    case EREMOTE:
    case ESTALE:
    case EKEYEXPIRED:
    case EKEYREVOKED:
    case EKEYREJECTED:
    case EACCES:
    case EROFS:
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    default:
        return runtime_status(r);
    }
}

/* Is it the size as asked for, or that rounded up to pages? */
static bool is_size(uint64_t length, uint64_t size, uint64_t bytes)
{
    return length == size || length == bytes || length == page_align_up(size);
}

/* ---- making a handle ------------------------------------------------------------------------------------- */

/*
 * With the lock: what is known of the allocation or attached memory at ptr. True if it has a token; if it has none, a
 * reference of its buffer is taken; and no buffer if nothing of this length is there.
 */
static bool ipc_find_token(const void *ptr, size_t length, struct memclient_token *token,
                           struct memclient_buffer **buffer)
{
    struct address_range *range = address_map_find_base(ptr);
    const struct attachment *attachment = range_attachment(range);
    const struct allocation *allocation = range_allocation(range);

    if (!range || !is_size(length, range->size, range->bytes))
        return false;
    if (attachment && !attachment->interop) {
        *token = attachment->token;
        return true;
    }
    if (!allocation)
        return false;
    if (allocation->has_token)
        *token = allocation->token;
    else
        *buffer = memclient_buffer_ref(allocation->buffer);
    return allocation->has_token;
}

/* With the lock: the token is kept, if the allocation is still there and no other thread was quicker. */
static bool ipc_keep_token(const void *ptr, const struct memclient_buffer *buffer, const struct memclient_token *token)
{
    struct allocation *allocation = range_allocation(address_map_find_base(ptr));

    if (!allocation || allocation->buffer != buffer || allocation->has_token)
        return false;
    allocation->token = *token;
    allocation->has_token = true;
    return true;
}

static hsa_status_t ipc_make_token(void *ptr, size_t length, struct memclient_buffer *buffer,
                                   struct memclient_token *token)
{
    _cleanup_(memclient_buffer_unrefp) struct memclient_buffer *again = NULL;
    struct memclient_token made;
    bool kept, found;
    int r = memclient_share(buffer, NULL, &made);

    if (r)
        return runtime_status(r);
    address_map_lock();
    kept = ipc_keep_token(ptr, buffer, &made);
    found = ipc_find_token(ptr, length, token, &again);
    address_map_unlock();
    if (!kept)
        (void)memclient_revoke(runtime_context(), &made);
    return found ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

hsa_status_t hsa_amd_ipc_memory_create(void *ptr, size_t len, hsa_amd_ipc_memory_t *handle)
{
    _cleanup_(runtime_leavep) struct memclient *ctx = runtime_enter();
    _cleanup_(memclient_buffer_unrefp) struct memclient_buffer *buffer = NULL;
    hsa_status_t status = HSA_STATUS_SUCCESS;
    struct memclient_token token;
    bool found;

    if (!ctx || !ptr || !handle || !len)
        return runtime_refusal(ctx);
    address_map_lock_read();
    found = ipc_find_token(ptr, len, &token, &buffer);
    address_map_unlock();
    if (!found)
        status = buffer ? ipc_make_token(ptr, len, buffer, &token) : HSA_STATUS_ERROR_INVALID_ARGUMENT;
    if (!status)
        memcpy(handle->handle, token.bytes, sizeof(handle->handle));
    return status;
}

/* ---- attaching ------------------------------------------------------------------------------------------- */

/* With the lock: counts up what the handle has attached already. */
static bool ipc_attach_again(const struct memclient_token *token, uint64_t allowed, void **ptr)
{
    struct attachment *attachment = attachment_find(token);

    if (!attachment)
        return false;
    attachment->refs++;
    attachment->allowed |= allowed;
    *ptr = (void *)(uintptr_t)attachment->range.start;
    return true;
}

/* With the lock: what has become of a new attachment. */
enum entered { ENTERED, COUNTED, JOINED, NOT_FREE, NO_MEMORY };

static enum entered ipc_enter(struct attachment *new, void **ptr)
{
    struct attachment *there = new;

    /* another thread may have been quicker */
    if (ipc_attach_again(&new->token, new->allowed, ptr))
        return COUNTED;
    *ptr = (void *)(uintptr_t)new->range.start;
    if (attachment_join(new, &there))
        return JOINED;
    if (!address_map_is_unclaimed(new->range.start, new->range.bytes))
        return NOT_FREE;
    return attachment_insert(new) ? ENTERED : NO_MEMORY;
}

static hsa_status_t ipc_attach_first(struct memclient_buffer *buffer, const struct memclient_token *token,
                                     uint64_t allowed, void **ret)
{
    enum entered entered = NOT_FREE;

    for (int alone = 0; entered == NOT_FREE && alone < 2; alone++) {
        _cleanup_(memclient_buffer_unrefp) struct memclient_buffer *one = memclient_buffer_ref(buffer);
        struct attachment *new = NULL;
        hsa_status_t status = attachment_map(&one, allowed, alone, &new);
        void *ptr = NULL;

        if (status)
            return status;
        new->token = *token;
        address_map_lock();
        entered = ipc_enter(new, &ptr);
        address_map_unlock();
        if (entered == JOINED) {
            (void)memclient_buffer_unref(new->buffer);
            free(new);
        } else if (entered != ENTERED) {
            attachment_free(new, runtime_context());
        }
        if (entered == ENTERED || entered == JOINED || entered == COUNTED)
            *ret = ptr;
    }
    return entered == NOT_FREE || entered == NO_MEMORY ? HSA_STATUS_ERROR_OUT_OF_RESOURCES : HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_ipc_memory_attach(const hsa_amd_ipc_memory_t *handle, size_t len, uint32_t num_agents,
                                       const hsa_agent_t *mapping_agents, void **mapped_ptr)
{
    _cleanup_(runtime_leavep) struct memclient *ctx = runtime_enter();
    _cleanup_(memclient_buffer_unrefp) struct memclient_buffer *buffer = NULL;
    struct memclient_token token;
    uint64_t allowed;
    bool again;
    int r;

    if (!ctx || !handle || !mapped_ptr || !len || (num_agents && !mapping_agents))
        return runtime_refusal(ctx);
    if (!topology_agents(num_agents, mapping_agents, &allowed))
        return HSA_STATUS_ERROR_INVALID_AGENT;
    memcpy(token.bytes, handle->handle, sizeof(token.bytes));
    /* also of what is attached already: it may have been revoked */
    r = memclient_open_token(ctx, &token, 0, &buffer);
    if (r)
        return ipc_status(r);
    if (!is_size(len, memclient_buffer_size(buffer), memclient_buffer_bytes(buffer)))
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    if (!num_agents)
        allowed = agents_all();
    address_map_lock();
    again = ipc_attach_again(&token, allowed, mapped_ptr);
    address_map_unlock();
    return again ? HSA_STATUS_SUCCESS : ipc_attach_first(buffer, &token, allowed, mapped_ptr);
}

hsa_status_t hsa_amd_ipc_memory_detach(void *mapped_ptr)
{
    return attachment_detach(mapped_ptr, false);
}
