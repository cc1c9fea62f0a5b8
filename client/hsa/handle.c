/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles of memory: created, imported and counted. See vmem.h.
 *
 * The buffer's placement encodes the type that a handle was created with (NONE only prefers a node), so importers get
 * it from the broker. The buffer has no home: the application chooses where virtual memory is mapped.
 *
 * The native library has one buffer object per buffer and session, however often the buffer is opened, so a handle is
 * found by that object. A restarted broker without its ledger reuses ids: then the handle gets another number.
 */
#include <errno.h>
#include <stdlib.h>

#include <memclient/hsa/hsa/hsa_ext_amd.h>

#include "base/align.h"
#include "base/cleanup.h"
#include "hsa/headroom.h"
#include "hsa/runtime.h"
#include "hsa/vmem.h"

#define NO_ID (UINT64_C(1) << 63) /* above all ids of buffers */

/* Both contain all handles. They need the lock. */
static struct vmem_handle *by_number, *by_buffer;
static uint64_t next_number = NO_ID;

/* ---- the table --------------------------------------------------------------------------------------------------- */

static struct vmem_handle *handle_of_number(uint64_t number)
{
    struct vmem_handle *handle;

    HASH_FIND(by_number, by_number, &number, sizeof(number), handle);
    return handle;
}

struct vmem_handle *handle_find(hsa_amd_vmem_alloc_handle_t wanted)
{
    struct vmem_handle *handle = handle_of_number(wanted.handle);

    return handle && handle->refs ? handle : NULL;
}

/* Finds handles without references, too. */
static struct vmem_handle *handle_of_buffer(const struct memclient_buffer *buffer)
{
    struct vmem_handle *handle;

    HASH_FIND(by_buffer, by_buffer, &buffer, sizeof(buffer), handle);
    return handle;
}

/* Assigns the number. False without memory. */
static bool handle_add(struct vmem_handle *handle)
{
    handle->number = memclient_buffer_id(handle->buffer);
    if (handle_of_number(handle->number))
        handle->number = next_number++;
    HASH_ADD(by_number, by_number, number, sizeof(handle->number), handle);
    if (!handle->by_number.tbl)
        return false;
    HASH_ADD(by_buffer, by_buffer, buffer, sizeof(handle->buffer), handle);
    if (handle->by_buffer.tbl)
        return true;
    HASH_DELETE(by_number, by_number, handle);
    return false;
}

static void handle_drop(struct vmem_handle *handle)
{
    HASH_DELETE(by_number, by_number, handle);
    HASH_DELETE(by_buffer, by_buffer, handle);
}

static void handle_end_if_unused(struct vmem_handle *handle, struct list *ended)
{
    if (handle->refs || handle->uses)
        return;
    handle_drop(handle);
    list_append(ended, &handle->ended);
}

static void handle_unref(struct vmem_handle *handle, struct list *ended)
{
    handle->refs--;
    handle_end_if_unused(handle, ended);
}

void handle_unuse(struct vmem_handle *handle, struct list *ended)
{
    handle->uses--;
    handle_end_if_unused(handle, ended);
}

static void handle_free(struct vmem_handle *handle)
{
    memclient_buffer_unref(handle->buffer);
    free(handle);
}

void handles_end(struct list *ended)
{
    struct list *link;

    if (list_is_empty(ended))
        return;
    while ((link = list_pop(ended)))
        handle_free(container_of(link, struct vmem_handle, ended));
    headroom_changed();
}

void handles_forget(void)
{
    struct vmem_handle *handle, *next;

    HASH_ITER(by_number, by_number, handle, next) {
        handle_drop(handle);
        handle_free(handle);
    }
}

/*
 * Returns a reference to the buffer's handle. If there is no handle, a new one takes the buffer over. All of it happens
 * while the lock is held once, since other threads may import and release the same memory at any time.
 */
static hsa_status_t handle_ref_buffer(struct memclient_buffer **buffer, const struct pool *pool,
                                      hsa_amd_memory_type_t type, bool is_described, hsa_amd_vmem_alloc_handle_t *ret)
{
    _cleanup_free_ struct vmem_handle *new = calloc(1, sizeof(*new));
    struct vmem_handle *handle;

    if (!new)
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    *new = (struct vmem_handle){
        .buffer = *buffer,
        .size = memclient_buffer_bytes(*buffer),
        .is_described = is_described,
        .pool = pool,
        .type = type,
    };
    list_init(&new->ended);
    address_map_lock();
    handle = handle_of_buffer(*buffer);
    if (!handle && handle_add(new)) {
        handle = steal_ptr(&new);
        *buffer = NULL;
    }
    if (handle) {
        handle->refs++;
        ret->handle = handle->number;
    }
    address_map_unlock();
    return handle ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_OUT_OF_RESOURCES;
}

/* ---- creating and counting --------------------------------------------------------------------------------------- */

/*
 * A pool may not give more than the headroom that it reported, even if memory of another node would do. The last
 * reported value may be out of date, so the broker is asked again first.
 */
static bool handle_exceeds_pool(const struct pool *pool, uint64_t size)
{
    uint64_t available;

    if (headroom_refusal(pool, size, -ENOMEM) != HSA_STATUS_ERROR_INVALID_ALLOCATION)
        return false;
    return size > pool->capacity || pool->kind == POOL_DECLARED || headroom_of_agent(pool->agent, &available) ||
           size > available;
}

static int handle_allocate(const struct pool *pool, uint64_t size, hsa_amd_memory_type_t type,
                           struct memclient_buffer **buffer)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;

    options.flags = MEMCLIENT_ALLOC_NO_HOME;
    if (type == MEMORY_TYPE_PINNED) {
        options.pool = pool->name;
    } else {
        options.nodes = &pool->agent->node;
        options.n_nodes = 1;
        options.placement = MEMCLIENT_PLACEMENT_PREFERRED;
        options.pages = pool->pages;
        options.page_size = pool->pages == MEMCLIENT_PAGES_HUGETLB ? pool->page_size : 0;
    }
    return memclient_alloc(runtime_context(), size, &options, buffer);
}

hsa_status_t hsa_amd_vmem_handle_create(hsa_amd_memory_pool_t wanted, size_t size, hsa_amd_memory_type_t type,
                                        uint64_t flags, hsa_amd_vmem_alloc_handle_t *memory_handle)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    _cleanup_(memclient_buffer_unrefp) struct memclient_buffer *buffer = NULL;
    const struct pool *pool;
    int r;

    if (!ctx || !memory_handle || !size || (type != MEMORY_TYPE_NONE && type != MEMORY_TYPE_PINNED))
        return runtime_refusal(ctx);
    pool = topology_pool(wanted.handle);
    if (!pool || !is_aligned(size, pool->allocatable ? pool->granule : page_size()))
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    if (!pool->allocatable || (type == MEMORY_TYPE_NONE && handle_exceeds_pool(pool, size)))
        return HSA_STATUS_ERROR_INVALID_ALLOCATION;
    r = handle_allocate(pool, size, type, &buffer);
    headroom_changed();
    return r < 0 ? headroom_refusal(pool, size, r) : handle_ref_buffer(&buffer, pool, type, true, memory_handle);
}

hsa_status_t hsa_amd_vmem_handle_release(hsa_amd_vmem_alloc_handle_t memory_handle)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    struct list ended = LIST_INIT(ended);
    struct vmem_handle *handle;

    if (!ctx)
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    address_map_lock();
    handle = handle_find(memory_handle);
    if (handle)
        handle_unref(handle, &ended);
    address_map_unlock();
    handles_end(&ended);
    return handle ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ALLOCATION;
}

hsa_status_t hsa_amd_vmem_retain_alloc_handle(hsa_amd_vmem_alloc_handle_t *memory_handle, void *addr)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    struct vmem_mapping *mapping;

    if (!ctx || !memory_handle || !addr)
        return runtime_refusal(ctx);
    address_map_lock();
    mapping = range_mapping(address_map_find(addr));
    if (mapping) {
        mapping->handle->refs++;
        memory_handle->handle = mapping->handle->number;
    }
    address_map_unlock();
    return mapping ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ALLOCATION;
}

void handle_describe(struct vmem_handle *handle, const struct memclient_buffer_info *info)
{
    if (handle->is_described)
        return;
    handle->pool = topology_pool_of(info);
    handle->type = info->placement == MEMCLIENT_PLACEMENT_PREFERRED ? MEMORY_TYPE_NONE : MEMORY_TYPE_PINNED;
    handle->is_described = true;
}

/* Asks the broker once for the description of imported memory. */
static hsa_status_t handle_load_description(hsa_amd_vmem_alloc_handle_t memory_handle)
{
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    _cleanup_(memclient_buffer_unrefp) struct memclient_buffer *buffer = NULL;
    struct vmem_handle *handle;
    int r;

    address_map_lock_read();
    handle = handle_find(memory_handle);
    if (handle && !handle->is_described)
        buffer = memclient_buffer_ref(handle->buffer);
    address_map_unlock();
    if (!buffer)
        return HSA_STATUS_SUCCESS;
    r = memclient_buffer_query(buffer, &info);
    if (r < 0)
        return runtime_status(r);
    address_map_lock();
    handle = handle_find(memory_handle);
    if (handle && handle->buffer == buffer)
        handle_describe(handle, &info);
    address_map_unlock();
    return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_vmem_get_alloc_properties_from_handle(hsa_amd_vmem_alloc_handle_t memory_handle,
                                                           hsa_amd_memory_pool_t *pool, hsa_amd_memory_type_t *type)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    struct vmem_handle *handle;
    hsa_status_t status;

    if (!ctx || !pool || !type)
        return runtime_refusal(ctx);
    status = handle_load_description(memory_handle);
    if (status)
        return status;
    address_map_lock_read();
    handle = handle_find(memory_handle);
    if (handle) {
        pool->handle = handle->pool ? handle->pool->handle : 0;
        *type = handle->type;
    }
    address_map_unlock();
    return handle ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ALLOCATION;
}

/* ---- sharing ----------------------------------------------------------------------------------------------------- */

hsa_status_t hsa_amd_vmem_export_shareable_handle(int *dmabuf_fd, hsa_amd_vmem_alloc_handle_t wanted, uint64_t flags)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    _cleanup_(memclient_buffer_unrefp) struct memclient_buffer *buffer = NULL;
    struct vmem_handle *handle;

    if (!ctx || !dmabuf_fd)
        return runtime_refusal(ctx);
    *dmabuf_fd = -1;
    address_map_lock_read();
    handle = handle_find(wanted);
    buffer = handle ? memclient_buffer_ref(handle->buffer) : NULL;
    address_map_unlock();
    if (!buffer)
        return HSA_STATUS_ERROR_INVALID_ALLOCATION;
    /* importers map it at the application's address, if possible */
    (void)memclient_make_home(buffer);
    return runtime_status(memclient_export_fd(buffer, 0, dmabuf_fd));
}

hsa_status_t hsa_amd_vmem_import_shareable_handle(int dmabuf_fd, hsa_amd_vmem_alloc_handle_t *handle)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    _cleanup_(memclient_buffer_unrefp) struct memclient_buffer *buffer = NULL;
    int r;

    if (!ctx || !handle || dmabuf_fd < 0)
        return runtime_refusal(ctx);
    r = memclient_import_fd(ctx, dmabuf_fd, &buffer);
    if (r < 0)
        return r == -EBADF ? HSA_STATUS_ERROR_INVALID_ALLOCATION : runtime_status(r);
    return handle_ref_buffer(&buffer, NULL, MEMORY_TYPE_NONE, false, handle);
}
