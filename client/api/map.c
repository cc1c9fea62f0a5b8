/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses: reservations, mappings, and what is where. */
#include "api/check.h"
#include "base/align.h"
#include "core/map.h"

int memclient_reserve(struct memclient_context *ctx, uint64_t size, const struct memclient_reserve_options *from,
                      struct memclient_reservation **res)
{
    struct memclient_reserve_options options;
    int r;

    r = check_pointer(res, "res");
    if (!r)
        r = check_options(&options, sizeof(options), from, "reserve options");
    if (!r && (!size || !is_page_aligned(size) || size > PTRDIFF_MAX))
        r = fail_with(EINVAL, "a reservation's size is a multiple of the page size, and not 0");
    if (!r && options.alignment && !is_power_of_two(options.alignment))
        r = fail_with(EINVAL, "the alignment is no power of two");
    if (!r && !is_page_aligned(options.address))
        r = fail_with(EINVAL, "the wanted address is no multiple of the page size");
    if (!r && options.flags & ~(unsigned)MEMCLIENT_RESERVE_PRIVATE)
        r = fail_with(EINVAL, "flags: 0x%x has bits that no reservation has", options.flags);
    if (!r)
        r = check_context(&ctx);
    if (r)
        return r;
    return options.flags & MEMCLIENT_RESERVE_PRIVATE
               ? map_reserve_private(ctx, size, options.alignment, options.address, res)
               : map_reserve(ctx, size, options.alignment, options.address, res);
}

void *memclient_reservation_address(const struct memclient_reservation *res)
{
    return (void *)(uintptr_t)res->start;
}

uint64_t memclient_reservation_size(const struct memclient_reservation *res)
{
    return res->size;
}

int memclient_reservation_release(struct memclient_reservation *res)
{
    return res ? map_release(res) : 0;
}

static int check_map(struct memclient_map_options *options, const struct memclient_map_options *from,
                     const struct memclient_buffer *buf)
{
    int r;

    r = check_pointer(buf, "buf");
    if (!r)
        r = check_options(options, sizeof(*options), from, "map options");
    if (!r)
        r = check_access(options->access);
    if (!r && options->flags & ~(unsigned)(MEMCLIENT_MAP_ANYWHERE | MEMCLIENT_MAP_NOT_HOME | MEMCLIENT_MAP_UNRESERVED |
                                           MEMCLIENT_MAP_ALONE | MEMCLIENT_MAP_COPY_ON_FORK | MEMCLIENT_MAP_SPARSE))
        r = fail_with(EINVAL, "flags: 0x%x has bits that no mapping has", options->flags);
    if (!r && options->address && options->flags & MEMCLIENT_MAP_ANYWHERE)
        r = fail_with(EINVAL, "an address was given, and a flag for choosing another");
    if (!r && !options->address && options->flags & MEMCLIENT_MAP_UNRESERVED)
        r = fail_with(EINVAL, "no address was given that could be an unreserved one");
    return r;
}

int memclient_map(struct memclient_buffer *buf, const struct memclient_map_options *from, void **address)
{
    struct memclient_map_options options;
    int r;

    r = check_pointer(address, "address");
    if (!r)
        r = check_map(&options, from, buf);
    return r ? r : map_buffer(buf, &options, address);
}

int memclient_map_many(size_t n, struct memclient_buffer *const *bufs, const struct memclient_map_options *from,
                       void **addresses)
{
    struct memclient_map_options options[MEMCLIENT_BATCH_MAX];
    int r;

    r = check_pointer(bufs, "bufs");
    if (!r)
        r = check_pointer(addresses, "addresses");
    if (!r && (!n || n > MEMCLIENT_BATCH_MAX))
        r = fail_with(EINVAL, "%zu buffers: 1 to %d can be mapped at once", n, MEMCLIENT_BATCH_MAX);
    /* the caller's version of the struct says where the next one is */
    for (size_t i = 0; !r && i < n; i++)
        r = check_map(&options[i], from ? (const void *)((const char *)from + i * from->size) : NULL, bufs[i]);
    return r ? r : map_buffers((unsigned)n, bufs, options, addresses);
}

int memclient_make_home(struct memclient_buffer *buf)
{
    int r = check_pointer(buf, "buf");

    return r ? r : map_make_home(buf);
}

int memclient_protect(struct memclient_context *ctx, void *address, uint64_t length, unsigned access)
{
    int r = check_access(access);

    if (!r)
        r = check_context(&ctx);
    return r ? r : map_protect(ctx, (uintptr_t)address, length, access);
}

int memclient_unmap(struct memclient_context *ctx, void *address, uint64_t length)
{
    int r = check_context(&ctx);

    return r ? r : map_unmap(ctx, (uintptr_t)address, length);
}

int memclient_dont_fork(struct memclient_context *ctx, void *address, uint64_t length)
{
    int r = check_context(&ctx);

    return r ? r : map_dont_copy(ctx, (uintptr_t)address, length);
}

int memclient_address_query(const void *address, struct memclient_address_info *info)
{
    struct memclient_address_info filled = MEMCLIENT_ADDRESS_INFO_INIT;
    int r;

    r = check_output(info, "info");
    if (!r)
        r = map_query((uintptr_t)address, &filled);
    return r ? r : write_output(info, &filled, sizeof(filled));
}
