/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mapping handles into reservations.
 *
 * A mapping's record takes the addresses before the kernel maps anything, and releases them after the kernel has
 * unmapped it. Meanwhile it is busy, so neither a second mapping nor the release of the reservation or the handle can
 * interfere.
 *
 * Where something is unmapped in a reservation, the native library puts inaccessible pages, so the addresses stay
 * reserved and the memory is released.
 */
#include <stdlib.h>

#include <memclient/hsa/hsa/hsa_ext_amd.h>

#include "base/align.h"
#include "base/cleanup.h"
#include "base/range.h"
#include "hsa/memory.h"
#include "hsa/runtime.h"
#include "hsa/vmem.h"

/* ---- runs -------------------------------------------------------------------------------------------------------- */

struct vmem_mapping *mapping_next(struct vmem_mapping *mapping, uint64_t end)
{
    struct address_range *next = address_map_next(&mapping->range);

    return next && next->start < end ? range_mapping(next) : NULL;
}

struct vmem_mapping *mapping_run(const void *address, uint64_t size)
{
    struct address_range *first = address_map_find_base(address);
    uint64_t at = (uintptr_t)address;

    for (struct address_range *range = first; range; range = address_map_next(range)) {
        if (range->kind != RANGE_MAPPING || range->busy || range->start != at ||
            range->bytes > size - (at - (uintptr_t)address))
            return NULL;
        at += range->bytes;
        if (at - (uintptr_t)address == size)
            return range_mapping(first);
    }
    return NULL;
}

/* ---- mapping ----------------------------------------------------------------------------------------------------- */

/* Enters a busy record that takes the addresses, and counts in the reservation and the handle. False if the request is
 * invalid. Needs the lock. */
static bool mapping_begin(struct vmem_mapping *mapping, void *va, uint64_t size, uint64_t offset,
                          hsa_amd_vmem_alloc_handle_t memory_handle)
{
    struct address_range *around = reservation_around((uintptr_t)va, size);
    struct vmem_handle *handle = handle_find(memory_handle);
    uint64_t granule;

    if (!around || !handle || !range_in_bounds(offset, size, handle->size) || !address_map_is_free((uintptr_t)va, size))
        return false;
    granule = memclient_buffer_granule(handle->buffer);
    if (!is_aligned((uintptr_t)va, granule) || !is_aligned(size, granule) || !is_aligned(offset, granule))
        return false;
    *mapping = (struct vmem_mapping){
        .handle = handle,
        .reservation = range_reservation(around),
        .offset = offset,
    };
    address_range_init(&mapping->range, RANGE_MAPPING, va, size, size);
    mapping->range.busy = true;
    address_map_insert(&mapping->range);
    mapping->reservation->mappings++;
    handle->uses++;
    return true;
}

/* Undoes mapping_begin(). Needs the lock. */
static void mapping_end(struct vmem_mapping *mapping, struct list *ended)
{
    address_map_remove(&mapping->range);
    mapping->reservation->mappings--;
    handle_unuse(mapping->handle, ended);
}

/* Maps without access, until that is set, and not as the buffer's home. */
static int mapping_map(const struct vmem_mapping *mapping)
{
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    void *address;

    options.offset = mapping->offset;
    options.length = mapping->range.bytes;
    options.address = (void *)(uintptr_t)mapping->range.start;
    options.access = MEMCLIENT_NO_ACCESS;
    /* nor sharing other mappings' pages, which would share their access */
    options.flags = MEMCLIENT_MAP_NOT_HOME | MEMCLIENT_MAP_ALONE;
    return memclient_map(mapping->handle->buffer, &options, &address);
}

hsa_status_t hsa_amd_vmem_map(void *va, size_t size, size_t in_offset, hsa_amd_vmem_alloc_handle_t memory_handle,
                              uint64_t flags)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    _cleanup_free_ struct vmem_mapping *mapping = NULL;
    struct list ended = LIST_INIT(ended);
    bool begun;
    int r;

    if (!ctx || !va || !size)
        return runtime_refusal(ctx);
    mapping = malloc(sizeof(*mapping));
    if (!mapping)
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    address_map_lock();
    begun = mapping_begin(mapping, va, size, in_offset, memory_handle);
    address_map_unlock();
    if (!begun)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    r = mapping_map(mapping);
    address_map_lock();
    if (r < 0)
        mapping_end(mapping, &ended);
    else
        steal_ptr(&mapping)->range.busy = false;
    address_map_unlock();
    handles_end(&ended);
    return runtime_status(r);
}

/* ---- unmapping --------------------------------------------------------------------------------------------------- */

static bool mapping_is_mapped(const struct vmem_mapping *mapping)
{
    struct memclient_address_info info = MEMCLIENT_ADDRESS_INFO_INIT;

    return !memclient_address_query((void *)(uintptr_t)mapping->range.start, &info) && info.buffer;
}

/* Ends those mappings of a busy run that were unmapped. If the kernel did not unmap `all`, the rest stays. Needs the
 * lock. */
static void mapping_end_run(struct vmem_mapping *first, uint64_t run_end, bool all, struct list *callbacks,
                            struct list *ended)
{
    for (struct vmem_mapping *m = first, *next; m; m = next) {
        next = mapping_next(m, run_end);
        m->range.busy = false;
        if (!all && mapping_is_mapped(m))
            continue;
        callbacks_take(&m->range, callbacks);
        mapping_end(m, ended);
        free(m);
    }
}

hsa_status_t hsa_amd_vmem_unmap(void *va, size_t size)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    uint64_t run_end = (uintptr_t)va + size;
    struct list callbacks = LIST_INIT(callbacks);
    struct list ended = LIST_INIT(ended);
    struct vmem_mapping *first;
    int r;

    if (!ctx || !va || !size || !is_page_aligned(size))
        return runtime_refusal(ctx);
    address_map_lock();
    first = mapping_run(va, size);
    for (struct vmem_mapping *m = first; m; m = mapping_next(m, run_end))
        m->range.busy = true;
    address_map_unlock();
    if (!first)
        return HSA_STATUS_ERROR_INVALID_ALLOCATION;
    r = memclient_unmap(ctx, va, size);
    address_map_lock();
    mapping_end_run(first, run_end, !r, &callbacks, &ended);
    address_map_unlock();
    handles_end(&ended);
    runtime_leavep(&ctx);
    callbacks_run(&callbacks);
    return r < 0 ? HSA_STATUS_ERROR : HSA_STATUS_SUCCESS;
}
