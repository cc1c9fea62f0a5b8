/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IPC memory and interop buffers: handles, attaching and detaching.
 *
 * An IPC handle is a token of the broker. It is made on first request and then kept with the allocation, since programs
 * compare handles to find out what they have attached already. As with every token, a stale, revoked or forged one is
 * refused at once, and its bytes are never reused.
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

/* ---- attachments ------------------------------------------------------------------------------------------------- */

static struct attachment *by_token; /* attached IPC memory */

/*
 * Maps a buffer, at its home if that is free, and takes ownership of it. The result is not in the address map yet. With
 * `alone`, it shares no mapping of the process.
 */
static hsa_status_t attachment_map(struct memclient_buffer **buffer, uint64_t allowed, bool alone,
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

/* Unmaps and frees an attachment that is not in the address map. ctx as in memory_release(). */
static void attachment_free(struct attachment *attachment, struct memclient_context *ctx)
{
    memory_release(&attachment->range, attachment->buffer, ctx);
    free(attachment);
}

/* The attachment of this handle, or NULL. Needs the lock. */
static struct attachment *attachment_find(const struct memclient_token *token)
{
    struct attachment *found;

    HASH_FIND(hh, by_token, token, sizeof(*token), found);
    return found;
}

/* If the same memory is attached at the same address already, that attachment takes the new mapping over. Needs the
 * lock. */
static bool attachment_join(const struct attachment *added, struct attachment **there)
{
    struct attachment *found = range_attachment(address_map_find_base((const void *)(uintptr_t)added->range.start));

    if (!found || found->interop || found->buffer != added->buffer)
        return false;
    found->refs++;
    found->maps++;
    found->allowed |= added->allowed;
    *there = found;
    return true;
}

/* Enters it into the address map, which has no attachment of its handle yet. False without memory. Needs the lock. */
static bool attachment_insert(struct attachment *attachment)
{
    if (!attachment->interop) {
        HASH_ADD(hh, by_token, token, sizeof(attachment->token), attachment);
        if (!attachment->hh.tbl)
            return false;
    }
    address_map_insert(&attachment->range);
    return true;
}

/* Drops a reference. True if that was the last one: then it is out of the address map. Needs the lock. */
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

/*
 * Drops a reference to the attachment at ptr. The last time it is unmapped, and its deallocation callbacks are called.
 */
static hsa_status_t attachment_detach(void *ptr, bool interop)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
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

/* ---- making a handle --------------------------------------------------------------------------------------------- */

/* Is it the requested size, or that size rounded up to pages? */
static bool ipc_is_size(uint64_t length, uint64_t size, uint64_t bytes)
{
    return length == size || length == bytes || length == page_align_up(size);
}

/*
 * Finds the token of the allocation or attached memory at ptr, and returns true. If it has none yet, *buffer is a new
 * reference to its buffer. If nothing of this length is there, *buffer stays as it is. Needs the lock.
 */
static bool ipc_find_token(const void *ptr, size_t length, struct memclient_token *token,
                           struct memclient_buffer **buffer)
{
    struct address_range *range = address_map_find_base(ptr);
    const struct attachment *attachment = range_attachment(range);
    const struct allocation *allocation = range_allocation(range);

    if (!range || !ipc_is_size(length, range->size, range->bytes))
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

/* Keeps the token, unless the allocation is gone or another thread was faster. Needs the lock. */
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
        (void)memclient_revoke_token(runtime_context(), &made);
    return found ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

hsa_status_t hsa_amd_ipc_memory_create(void *ptr, size_t len, hsa_amd_ipc_memory_t *handle)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
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

/* ---- attaching --------------------------------------------------------------------------------------------------- */

/* Adds a reference to what the handle has attached already. Needs the lock. */
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

/* What became of a new attachment. */
enum entered { ENTERED, COUNTED, JOINED, NOT_FREE, NO_MEMORY };

static enum entered ipc_enter(struct attachment *added, void **ptr)
{
    struct attachment *there = added;

    /* another thread may have been faster */
    if (ipc_attach_again(&added->token, added->allowed, ptr))
        return COUNTED;
    *ptr = (void *)(uintptr_t)added->range.start;
    if (attachment_join(added, &there))
        return JOINED;
    if (!address_map_is_only_locked(added->range.start, added->range.bytes))
        return NOT_FREE;
    return attachment_insert(added) ? ENTERED : NO_MEMORY;
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
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
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
    /* even if it is attached already: the token may have been revoked */
    r = memclient_open_token(ctx, &token, 0, &buffer);
    if (r)
        return ipc_status(r);
    if (!ipc_is_size(len, memclient_buffer_size(buffer), memclient_buffer_bytes(buffer)))
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

/* ---- interop buffers --------------------------------------------------------------------------------------------- */

hsa_status_t hsa_amd_interop_map_buffer(uint32_t num_agents, hsa_agent_t *agents, int interop_handle, uint32_t flags,
                                        size_t *size, void **ptr, size_t *metadata_size, const void **metadata)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    _cleanup_(memclient_buffer_unrefp) struct memclient_buffer *buffer = NULL;
    struct attachment *attachment = NULL;
    hsa_status_t status;
    uint64_t allowed;
    int r;

    if (!ctx || !agents || !size || !ptr || !num_agents || flags)
        return runtime_refusal(ctx);
    if (!topology_agents(num_agents, agents, &allowed))
        return HSA_STATUS_ERROR_INVALID_AGENT;
    r = memclient_import_fd(ctx, interop_handle, &buffer);
    if (r)
        return r == -EBADF ? HSA_STATUS_ERROR_INVALID_ARGUMENT : runtime_status(r);
    status = attachment_map(&buffer, allowed, true, &attachment);
    if (status)
        return status;
    attachment->interop = true;
    *size = attachment->range.size;
    *ptr = (void *)(uintptr_t)attachment->range.start;
    if (metadata_size)
        *metadata_size = 0;
    if (metadata)
        *metadata = NULL;
    address_map_lock();
    (void)attachment_insert(attachment);
    address_map_unlock();
    return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_interop_unmap_buffer(void *ptr)
{
    hsa_status_t status = attachment_detach(ptr, true);

    /* other addresses are ignored */
    return status == HSA_STATUS_ERROR_INVALID_ARGUMENT ? HSA_STATUS_SUCCESS : status;
}
