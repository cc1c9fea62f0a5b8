/* SPDX-License-Identifier: Apache-2.0 */
/* Mapping a buffer: where, by which descriptor, and what may be there already. */
#include "core/map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/align.h"
#include "base/checked.h"
#include "base/range.h"
#include "proto/status.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* 5.14 */
#endif
/* The kernel's fault_around_bytes, as nobody changes it. */
#define FAULT_AROUND (UINT64_C(64) << 10)

#define HEX(number) ((unsigned long long)(number))

int map_prot(unsigned access)
{
    if (access & MEMCLIENT_WRITE)
        return PROT_READ | PROT_WRITE;
    return access & MEMCLIENT_READ ? PROT_READ : PROT_NONE;
}

/* A request with its defaults filled in. */
struct wish {
    uint64_t offset;
    uint64_t length;
    uint64_t address; /* 0 = home or anywhere */
    unsigned access;
    unsigned flags;
};

static int check_range(const struct memclient_buffer *buf,
                       const struct memclient_map_options *options, struct wish *wish)
{
    wish->offset = options->offset;
    wish->length = options->length;
    wish->address = (uintptr_t)options->address;
    wish->flags = options->flags;
    if (wish->offset >= buf->bytes)
        return fail_with(EOVERFLOW, "offset %llu is not inside the buffer's %llu bytes",
                    HEX(wish->offset), HEX(buf->bytes));
    if (!wish->length)
        wish->length = buf->bytes - wish->offset;
    if (!is_aligned(wish->offset, buf->granule) || !is_aligned(wish->length, buf->granule) ||
        !is_aligned(wish->address, buf->granule))
        return fail_with(EINVAL, "offset, length and address must be multiples of the granule, %llu bytes",
                    HEX(buf->granule));
    if (!range_in_bounds(wish->offset, wish->length, buf->bytes))
        return fail_with(EOVERFLOW, "%llu bytes from offset %llu go beyond the buffer's %llu bytes",
                    HEX(wish->length), HEX(wish->offset), HEX(buf->bytes));
    if (wish->address > UINTPTR_MAX - wish->length)
        return fail_with(EOVERFLOW, "the range goes beyond the end of all addresses");
    return 0;
}

static int check_access(const struct memclient_buffer *buf, unsigned wanted, unsigned *access)
{
    unsigned rights = buffer_rights(buf);

    if (wanted & MEMCLIENT_WRITE) {
        if (buffer_flags(buf) & MEMCLIENT_BUFFER_PUBLISHED)
            return fail_with(EROFS, "buffer #%llu is published: it can be mapped for reading only",
                        HEX(buf->id));
        if (!(rights & MEMCLIENT_WRITE))
            return fail_with(EACCES, "this handle of buffer #%llu has no right to write", HEX(buf->id));
    }
    if (!wanted)
        wanted = buffer_may_write(buf) ? MEMCLIENT_READ | MEMCLIENT_WRITE : MEMCLIENT_READ;
    *access = wanted & MEMCLIENT_WRITE ? MEMCLIENT_READ | MEMCLIENT_WRITE : wanted;
    return 0;
}

/* Where to map and how mmap() is to treat what is there. */
struct place {
    uint64_t address;
    int flags;
};

/* With the space's lock. */
static int find_place(const struct memclient_buffer *buf, const struct wish *wish,
                      struct place *place)
{
    uint64_t home = buffer_address(buf);
    uint64_t address = wish->address;
    struct reserved_range *reserved;

    if (!address) {
        if (wish->flags & MEMCLIENT_MAP_NOT_HOME || (!home && wish->flags & MEMCLIENT_MAP_ANYWHERE)) {
            *place = (struct place){0};
            return 0;
        }
        if (!home)
            return fail_with(EADDRNOTAVAIL,
                        "buffer #%llu has no home address: map it into a reservation, or anywhere",
                        HEX(buf->id));
        address = home + wish->offset;
    }
    if (!space_is_free(&process_space, address, wish->length))
        return fail_with(EADDRINUSE, "0x%llx-0x%llx: something is mapped there already", HEX(address),
                    HEX(address + wish->length));
    reserved = space_reserved_find(&process_space, address);
    /* the broker, which gives homes, knows nothing of such a range, so nobody meant the home to be in it */
    if (!wish->address && reserved && !container_of(reserved, struct memclient_reservation, range)->id)
        return fail_with(EADDRINUSE, "0x%llx, the home of buffer #%llu: this process has reserved that for itself",
                         HEX(address), HEX(buf->id));
    if (reserved && range_encloses((struct range){reserved->start, reserved->size},
                                   (struct range){address, wish->length})) {
        *place = (struct place){.address = address, .flags = MAP_FIXED};
        return 0;
    }
    if (wish->address)
        return fail_with(EADDRNOTAVAIL,
                    "0x%llx-0x%llx is not inside one reservation of this process", HEX(address),
                    HEX(address + wish->length));
    *place = (struct place){.address = address, .flags = MAP_FIXED_NOREPLACE};
    return 0;
}

static int map_errno(const struct memclient_buffer *buf, const struct place *place)
{
    char text[128];

    if (errno == EEXIST)
        return fail_with(EADDRINUSE,
                    "0x%llx, the home of buffer #%llu: something of this process is there already",
                    HEX(place->address), HEX(buf->id));
    if (errno == ENOMEM)
        return fail_with(ENOMEM,
                         "the kernel maps no more here: too many mappings (vm.max_map_count) or addresses (ulimit -v); "
                         "unmap something");
    return fail_with(errno, "mapping buffer #%llu: %s", HEX(buf->id),
                strerror_r(errno, text, sizeof(text)));
}

static int refuse_another(void)
{
    return fail_with(ENOMEM,
                     "this process has %llu mappings of buffers, and the rest of vm.max_map_count is for others; unmap "
                     "some, raise that, or put small ones together: a UMF pool takes one mapping for a whole slab",
                     HEX(process_space.n_mappings));
}

/*
 * With the context's lock. Another process may have published the buffer after this handle last heard of it: the
 * kernel then refuses what the cached descriptor was good for. The handle learns it, and the next is for reading.
 */
static bool was_published(struct memclient_buffer *buf, int fd)
{
    int seals = fcntl(fd, F_GET_SEALS);

    if (!buf->fd_writable || seals < 0 || !(seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)))
        return false;
    buffer_set_published(buf, seals & F_SEAL_WRITE ? 0 : MEMCLIENT_BUFFER_FUTURE_ONLY);
    buffer_drop_fd(buf);
    return true;
}

/* What to map it by: the descriptor or, without one, what is mapped already. */
struct origin {
    int fd;
    const struct mapping *mapping;
    bool writable;
};

/* With the space's lock and the context's. False: there is none at hand. */
static bool find_origin(struct memclient_buffer *buf, const struct wish *wish, bool writable, struct origin *from)
{
    int fd = buffer_cached_fd(buf, writable);

    if (fd >= 0) {
        *from = (struct origin){.fd = fd, .writable = buf->fd_writable};
        return true;
    }
    list_for_each_entry(m, &buf->mappings, struct mapping, in_buffer)
    {
        if (m->writable == writable && range_contains((struct range){m->offset, m->size}, wish->offset)) {
            *from = (struct origin){.fd = -1, .mapping = m, .writable = writable};
            return true;
        }
    }
    return false;
}

static void *map_descriptor(int fd, const struct wish *wish, const struct place *place)
{
    void *at = mmap((void *)(uintptr_t)place->address, (size_t)wish->length,
                    map_prot(wish->access), MAP_SHARED | place->flags, fd, (off_t)wish->offset);

    /* where MAP_FIXED_NOREPLACE is not known (valgrind) the address is a mere hint */
    if (at != MAP_FAILED && place->address && (uintptr_t)at != place->address) {
        munmap(at, (size_t)wish->length);
        at = MAP_FAILED;
        errno = EEXIST;
    }
    return at;
}

/*
 * A shared mapping of no size, "moved", stays and is there once more, as long as one likes from that page of the file
 * on. First to wherever the kernel likes, so that nothing is lost by a refusal: of huge pages, and in valgrind.
 */
static void *duplicate(const struct mapping *m, const struct wish *wish)
{
    size_t length = (size_t)wish->length;
    uint64_t from = m->start + (wish->offset - m->offset);
    void *at = mremap((void *)(uintptr_t)from, 0, length, MREMAP_MAYMOVE);

    if (at == MAP_FAILED)
        return at;
    if (mprotect(at, length, map_prot(wish->access)) < 0 || (m->dont_copy && madvise(at, length, MADV_DOFORK) < 0)) {
        munmap(at, length);
        return MAP_FAILED;
    }
    return at;
}

static void *move_to(void *from, uint64_t length, const struct place *place)
{
    void *to = (void *)(uintptr_t)place->address;

    if (!to)
        return from;
    if (place->flags & MAP_FIXED_NOREPLACE && map_reserve_pages(place->address, length, MAP_FIXED_NOREPLACE) < 0) {
        errno = EEXIST;
        to = MAP_FAILED;
    } else {
        to = mremap(from, (size_t)length, (size_t)length, MREMAP_MAYMOVE | MREMAP_FIXED, to);
        if (to == MAP_FAILED && place->flags & MAP_FIXED_NOREPLACE)
            munmap((void *)(uintptr_t)place->address, (size_t)length);
    }
    if (to == MAP_FAILED) {
        int err = errno;

        munmap(from, (size_t)length);
        errno = err;
    }
    return to;
}

static int refuse_publishing(const struct memclient_buffer *buf)
{
    return fail_with(EBUSY, "buffer #%llu is being published; try again in a moment", HEX(buf->id));
}

/* With the space's lock and the context's. 1 = it cannot be mapped by that, or not any more. */
static int map_at(struct memclient_buffer *buf, const struct origin *from, const struct wish *wish,
                  const struct place *place, struct mapping *mapping)
{
    void *at;

    if (from->fd >= 0) {
        at = map_descriptor(from->fd, wish, place);
    } else {
        at = duplicate(from->mapping, wish);
        if (at == MAP_FAILED)
            return 1;
        at = move_to(at, wish->length, place);
    }
    if (at == MAP_FAILED) {
        int r = map_errno(buf, place);

        /* some kernels take away what is there before they refuse */
        if (place->flags & MAP_FIXED)
            (void)map_reserve_pages(place->address, wish->length, MAP_FIXED_NOREPLACE);
        if (r != -EPERM || from->fd < 0 || !from->writable)
            return r;
        /* the kernel refuses from when a seal is tried on, and shows it when it fits */
        return was_published(buf, from->fd) ? 1 : refuse_publishing(buf);
    }
    *mapping = (struct mapping){
        .start = (uintptr_t)at,
        .size = wish->length,
        .buffer = buffer_ref(buf),
        .offset = wish->offset,
        .access = wish->access,
        .writable = from->writable,
    };
    space_insert(&process_space, mapping);
    list_prepend(&buf->mappings, &mapping->in_buffer);
    return 0;
}

/* With the space's lock. 1 = there is nothing at hand to map it by. */
static int try_map(struct memclient_buffer *buf, const struct wish *wish, bool writable,
                   struct mapping *mapping)
{
    struct origin from;
    struct place place;
    int r;

    if (buf->publishing && writable)
        return refuse_publishing(buf);
    if (process_space.n_mappings >= space_mappings_max())
        return refuse_another();
    r = find_place(buf, wish, &place);
    if (r && !(r == -EADDRINUSE && wish->flags & MEMCLIENT_MAP_ANYWHERE))
        return r;
    if (r)
        place = (struct place){0};
    pthread_mutex_lock(&buf->ctx->lock);
    if (buf->ctx->closed) {
        r = fail_with(ESHUTDOWN, "the context was closed");
    } else if (!find_origin(buf, wish, writable, &from)) {
        r = 1;
    } else {
        r = map_at(buf, &from, wish, &place, mapping);
        if (r == -EADDRINUSE && wish->flags & MEMCLIENT_MAP_ANYWHERE)
            r = map_at(buf, &from, wish, &(struct place){0}, mapping);
    }
    pthread_mutex_unlock(&buf->ctx->lock);
    return r;
}

/* ---- homes ---------------------------------------------------------------------------------- */

/* A place for a buffer's home: in which reservation, and where in it. */
struct plot {
    uint64_t home;
    uint64_t reservation; /* 0 = none suits */
    uint64_t offset;
    unsigned generation;
};

/* With the space's lock: all of the buffer would lie in one reservation of its session. */
static struct plot plot_at(const struct memclient_buffer *buf, uint64_t home)
{
    struct reserved_range *range = space_reserved_find(&process_space, home);
    const struct memclient_reservation *res;

    if (!range || !range_encloses((struct range){range->start, range->size}, (struct range){home, buf->bytes}))
        return (struct plot){0};
    res = container_of(range, struct memclient_reservation, range);
    return (struct plot){
        .home = home,
        .reservation = res->ctx == buf->ctx ? res->id : 0,
        .offset = home - range->start,
        .generation = res->generation,
    };
}

static bool may_get_home(const struct memclient_buffer *buf)
{
    return !buffer_address(buf) && buffer_rights(buf) & MEMCLIENT_MANAGE;
}

static int place(struct channel *channel, const struct memclient_buffer *buf, const struct plot *plot,
                 uint64_t deadline)
{
    if (channel->generation != plot->generation)
        return fail_with(EADDRNOTAVAIL, "the reservation is of a session that ended");
    return rpc_place(channel, buf->id, plot->reservation, plot->offset, deadline);
}

/* It stays without if it has one by now, another has this one, or the range is not suited or not ours any more. */
static int make_home(struct memclient_buffer *buf, const struct plot *plot, uint64_t deadline)
{
    int r;

    if (!plot->reservation)
        return 0;
    r = BUFFER_CALL(buf, deadline, channel, place(channel, buf, plot, deadline));
    if (!r)
        buffer_set_address(buf, plot->home);
    if (r == -EADDRNOTAVAIL)
        return 0;
    switch (r ? fail_status() : STATUS_OK) {
    case STATUS_BUSY:
    case STATUS_ADDRESS_TAKEN:
    case STATUS_NO_RIGHT:
    case STATUS_INVALID_ARGUMENT:
    case STATUS_PUBLISHED:
        return 0;
    }
    return r;
}

/* The first mapping of a buffer without a home, in a reservation that it fits into, makes its home. */
static int make_home_by(struct memclient_buffer *buf, const struct wish *wish, uint64_t deadline)
{
    struct plot plot = {0};

    if (!wish->address || wish->flags & MEMCLIENT_MAP_NOT_HOME || wish->offset > wish->address || !may_get_home(buf))
        return 0;
    space_lock_read();
    if (space_is_free(&process_space, wish->address, wish->length))
        plot = plot_at(buf, wish->address - wish->offset);
    space_unlock();
    return make_home(buf, &plot, deadline);
}

int map_make_home(struct memclient_buffer *buf)
{
    struct plot plot = {0};
    int r;

    if (may_get_home(buf)) {
        space_lock_read();
        /* the oldest comes last */
        list_for_each_entry(mapping, &buf->mappings, struct mapping, in_buffer) {
            struct plot here = plot_at(buf, mapping->start - mapping->offset);

            if (here.reservation)
                plot = here;
        }
        space_unlock();
    }
    r = make_home(buf, &plot, context_deadline(buf->ctx));
    if (r || buffer_address(buf))
        return r;
    return fail_with(EADDRNOTAVAIL,
                     "buffer #%llu can have no home: it needs MANAGE and a mapping in a reservation of this session "
                     "that holds all of it, where no other buffer has its home",
                     (unsigned long long)buf->id);
}

/*
 * Writing to a shared mapping faults page by page. Reading has the kernel enter all pages around that are there, 64 KiB
 * of them, and as writable as the mapping is. So one fault spares all the others in what is no larger than that and,
 * being mapped for it, will soon be written; with less than four pages it costs as much as it spares. Of a larger one
 * nobody knows how much will be touched. It is the kernel that reads, so a page that is lost raises no signal here.
 */
static void enter_pages(const struct memclient_buffer *buf, const struct wish *wish, uint64_t start)
{
    uint64_t end = start + wish->length;

    if (!(wish->access & MEMCLIENT_WRITE) || wish->length > FAULT_AROUND || wish->length < 4 * page_size() ||
        buffer_flags(buf) & MEMCLIENT_BUFFER_LAZY)
        return;
    for (uint64_t at = start; at < end; at = align_down(at, FAULT_AROUND) + FAULT_AROUND)
        (void)madvise((void *)(uintptr_t)at, (size_t)page_size(), MADV_POPULATE_READ);
}

int map_buffer(struct memclient_buffer *buf, const struct memclient_map_options *options,
               void **address)
{
    uint64_t deadline = context_deadline(buf->ctx);
    struct mapping *mapping;
    struct wish wish;
    uint64_t start;
    int r;

    if (buffer_flags(buf) & MEMCLIENT_BUFFER_FOREIGN)
        return fail_with(EOPNOTSUPP, "buffer #%llu is foreign: export its descriptor, and use that as its maker says",
                         HEX(buf->id));
    r = check_range(buf, options, &wish);
    if (r)
        return r;
    mapping = malloc(sizeof(*mapping));
    if (!mapping)
        return fail_with(ENOMEM, "no memory for a mapping's record");
    r = make_home_by(buf, &wish, deadline);
    while (!r) {
        bool writable;

        r = check_access(buf, options->access, &wish.access);
        if (r)
            break;
        writable = buffer_may_write(buf);
        space_lock();
        r = try_map(buf, &wish, writable, mapping);
        if (!r)
            start = mapping->start;
        space_unlock();
        if (!r) {
            enter_pages(buf, &wish, start);
            *address = (void *)(uintptr_t)start;
            return 0;
        }
        if (r == 1)
            r = buffer_cache_fd(buf, writable, deadline);
    }
    free(mapping);
    return r;
}

int map_query(uint64_t address, struct memclient_address_info *info)
{
    struct reserved_range *range;
    struct mapping *mapping;

    space_lock_read();
    mapping = space_find(&process_space, address);
    range = space_reserved_find(&process_space, address);
    if (range) {
        struct memclient_reservation *res =
            container_of(range, struct memclient_reservation, range);

        info->reservation = res;
        info->context = res->ctx;
        info->address = (void *)(uintptr_t)range->start;
        info->length = range->size;
        info->access = MEMCLIENT_NO_ACCESS;
        info->process_private = !res->id;
    }
    if (mapping) {
        info->context = mapping->buffer->ctx;
        info->address = (void *)(uintptr_t)mapping->start;
        info->length = mapping->size;
        info->buffer = mapping->buffer;
        info->buffer_id = mapping->buffer->id;
        info->offset = mapping->offset + (address - mapping->start);
        info->access = mapping->access;
    }
    space_unlock();
    if (!range && !mapping)
        return fail_with(EFAULT, "0x%llx: nothing of this library is there", HEX(address));
    return 0;
}
