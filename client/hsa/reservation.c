/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reserving addresses.
 *
 * A range comes from the broker's arena, where no other process has anything at the same addresses. If that is
 * impossible (the requested address is outside of the arena, the arena is full, a limit is reached, no broker answers),
 * the range is private to this process: then other processes may use the same addresses, and nothing else differs.
 */
#include <errno.h>
#include <stdlib.h>

#include <memclient/hsa/hsa/hsa_ext_amd.h>

#include "base/align.h"
#include "base/cleanup.h"
#include "hsa/runtime.h"
#include "hsa/vmem.h"

static int reservation_try(uint64_t size, uint64_t alignment, uint64_t address, struct memclient_reservation **res)
{
    struct memclient_reserve_options options = MEMCLIENT_RESERVE_OPTIONS_INIT;

    options.alignment = alignment;
    options.address = address;
    if (memclient_reserve(runtime_context(), size, &options, res) == 0)
        return 0;
    options.flags = MEMCLIENT_RESERVE_PRIVATE;
    return memclient_reserve(runtime_context(), size, &options, res);
}

/* Tries the requested address, aligned as the caller says; then any address, aligned for huge pages. */
static int reservation_make(uint64_t size, uint64_t alignment, uint64_t address, struct memclient_reservation **res)
{
    uint64_t least = alignment ? alignment : page_size();

    if (address && is_aligned(address, least) && !reservation_try(size, least, address, res))
        return 0;
    if (!alignment && size >= HUGE_PAGE)
        least = HUGE_PAGE;
    return reservation_try(size, least, 0, res);
}

hsa_status_t hsa_amd_vmem_address_reserve_align(void **va, size_t size, uint64_t address, uint64_t alignment,
                                                uint64_t flags)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    _cleanup_free_ struct vmem_reservation *reservation = NULL;
    struct memclient_reservation *res;

    if (!ctx || !va || !size || !is_page_aligned(size))
        return runtime_refusal(ctx);
    if (alignment && (!is_power_of_two(alignment) || alignment < page_size()))
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    reservation = calloc(1, sizeof(*reservation));
    if (!reservation || reservation_make(size, alignment, address, &res) < 0)
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    *va = memclient_reservation_address(res);
    address_range_init(&reservation->range, RANGE_RESERVATION, *va, size, size);
    reservation->res = res;
    reservation->no_register = flags & HSA_AMD_VMEM_ADDRESS_NO_REGISTER;
    address_map_lock();
    address_map_insert(&steal_ptr(&reservation)->range);
    address_map_unlock();
    return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_vmem_address_reserve(void **va, size_t size, uint64_t address, uint64_t flags)
{
    return hsa_amd_vmem_address_reserve_align(va, size, address, 0, flags);
}

/* Removes it from the address map before anything else can get the addresses. */
static hsa_status_t reservation_take(void *va, uint64_t size, struct vmem_reservation **taken)
{
    struct address_range *range = reservation_find(va);

    if (!range || range->start != (uintptr_t)va)
        return HSA_STATUS_ERROR_INVALID_ALLOCATION;
    if (range->size != size)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    if (range_reservation(range)->mappings)
        return HSA_STATUS_ERROR_RESOURCE_FREE;
    address_map_remove(range);
    *taken = range_reservation(range);
    return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_vmem_address_free(void *va, size_t size)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    struct vmem_reservation *reservation;
    hsa_status_t status;
    int r;

    if (!ctx || !va || !size)
        return runtime_refusal(ctx);
    address_map_lock();
    status = reservation_take(va, size, &reservation);
    address_map_unlock();
    if (status)
        return status;
    r = memclient_reservation_release(reservation->res);
    if (!r) {
        free(reservation);
        return HSA_STATUS_SUCCESS;
    }
    /* the program has mapped something there through the native API */
    address_map_lock();
    address_map_insert(&reservation->range);
    address_map_unlock();
    return r == -EBUSY ? HSA_STATUS_ERROR_RESOURCE_FREE : HSA_STATUS_ERROR;
}
