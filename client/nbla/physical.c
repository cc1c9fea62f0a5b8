/* SPDX-License-Identifier: Apache-2.0 */
/* See physical.h. */
#include "nbla/physical.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "nbla/error.h"
#include "nbla/spare.h"

static nbla_physical_memory *physical_new(struct memclient_context *ctx, size_t bytes)
{
    nbla_physical_memory *p = object_new(sizeof(*p));

    if (!p)
        return NULL;
    p->refs = 1;
    p->ctx = ctx;
    p->bytes = bytes;
    return p;
}

nbla_physical_memory *nbla_physical_memory_new(struct memclient_context *ctx, size_t bytes, const char *device_id)
{
    struct device *device = device_new(ctx, device_id);
    nbla_physical_memory *p = device ? physical_new(ctx, bytes ? bytes : 1) : NULL;

    if (p)
        p->device = device;
    else
        device_unref(device);
    return p;
}

nbla_physical_memory *physical_new_opened(struct memclient_buffer *buffer, uint64_t offset, uint64_t length,
                                          void *wanted)
{
    nbla_physical_memory *p = physical_new(memclient_buffer_context(buffer), (size_t)length);

    if (!p)
        return NULL;
    p->offset = offset;
    p->wanted = (uintptr_t)wanted;
    lock_fd_init(&p->lock_fd, memclient_buffer_ref(buffer), true);
    return p;
}

nbla_physical_memory *nbla_physical_memory_ref(nbla_physical_memory *p)
{
    if (p)
        __atomic_fetch_add(&p->refs, 1, __ATOMIC_RELAXED);
    return p;
}

/* Drops a reference. Returns the buffer of the last one, which becomes the caller's; NULL: there is none. */
static struct memclient_buffer *physical_drop(nbla_physical_memory *p)
{
    struct memclient_buffer *buffer;

    if (!p || __atomic_sub_fetch(&p->refs, 1, __ATOMIC_ACQ_REL))
        return NULL;
    buffer = lock_fd_end(&p->lock_fd);
    device_unref(p->device);
    free(p);
    return buffer;
}

void nbla_physical_memory_unref(nbla_physical_memory *p)
{
    (void)memclient_buffer_unref(physical_drop(p));
}

/* Allocates n chunks of one device, MEMCLIENT_BATCH_MAX at most: all or none. */
static int physical_alloc_alike(size_t n, nbla_physical_memory *const *p, unsigned flags)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *buffers[MEMCLIENT_BATCH_MAX];
    uint64_t sizes[MEMCLIENT_BATCH_MAX];
    int r;

    if (n == 1) {
        r = spare_alloc((*p)->ctx, (*p)->device, (*p)->bytes, flags, buffers);
    } else {
        for (size_t i = 0; i < n; i++)
            sizes[i] = p[i]->bytes;
        device_choose((*p)->device, &options);
        options.flags = MEMCLIENT_ALLOC_NO_HOME | flags;
        r = spare_alloc_many((*p)->ctx, n, sizes, &options, buffers);
    }
    if (r)
        return fail_alloc(r);
    for (size_t i = 0; i < n; i++) {
        lock_fd_init(&p[i]->lock_fd, buffers[i], false);
        p[i]->bytes = (size_t)memclient_buffer_bytes(buffers[i]);
    }
    return 0;
}

int physical_alloc(nbla_physical_memory *p)
{
    return p->lock_fd.buffer ? 0 : physical_alloc_alike(1, &p, MEMCLIENT_ALLOC_NO_DESCRIPTOR);
}

size_t nbla_physical_memory_alloc(nbla_physical_memory *p)
{
    if (!p) {
        (void)fail_null("p");
        return 0;
    }
    return physical_alloc(p) < 0 ? 0 : p->bytes;
}

size_t nbla_physical_memory_bytes(const nbla_physical_memory *p)
{
    return p->bytes;
}

bool nbla_physical_memory_allocated(const nbla_physical_memory *p)
{
    return p->lock_fd.buffer;
}

uint64_t physical_home(const nbla_physical_memory *p)
{
    uint64_t home = p->lock_fd.opened ? (uintptr_t)memclient_buffer_home(p->lock_fd.buffer) : 0;

    return home ? home + p->offset : 0;
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

int chunks_append(struct chunks *chunks, nbla_physical_memory *const *p, size_t n)
{
    nbla_physical_memory **at;
    size_t total, size;

    if (!n)
        return 0;
    if (!p)
        return fail_null("p");
    if (!checked_add_size(chunks->n, n, &total) || !checked_mul_size(total, sizeof(*at), &size))
        return fail(NBLA_ERROR_MEMORY, "too many chunks");
    for (size_t i = 0; i < n; i++)
        if (!p[i])
            return fail_null("a physical memory");
    at = realloc(chunks->at, size);
    if (!at)
        return fail(NBLA_ERROR_MEMORY, "no memory for a list of chunks");
    for (size_t i = 0; i < n; i++)
        at[chunks->n + i] = nbla_physical_memory_ref(p[i]);
    chunks->at = at;
    chunks->n = total;
    return 0;
}

void chunks_cut(struct chunks *chunks, size_t n)
{
    struct memclient_buffer *left[MEMCLIENT_BATCH_MAX];
    size_t n_left = 0;

    while (chunks->n > n) {
        left[n_left] = physical_drop(chunks->at[--chunks->n]);
        n_left += left[n_left] ? 1 : 0;
        if (n_left == MEMCLIENT_BATCH_MAX || chunks->n == n) {
            memclient_buffer_unref_many(n_left, left);
            n_left = 0;
        }
    }
}

void chunks_clear(struct chunks *chunks)
{
    chunks_cut(chunks, 0);
    free(chunks->at);
    chunks->at = NULL;
}

/* Collects the next chunks without memory that can be allocated together. A chunk may be in the list twice. */
static size_t physical_gather(nbla_physical_memory *const *p, size_t n, size_t *at,
                              nbla_physical_memory *alike[MEMCLIENT_BATCH_MAX])
{
    size_t found = 0;

    for (; *at < n && found < MEMCLIENT_BATCH_MAX; ++*at) {
        nbla_physical_memory *next = p[*at];
        bool again = next->lock_fd.buffer;

        for (size_t i = 0; i < found && !again; i++)
            again = alike[i] == next;
        if (again)
            continue;
        if (found && (next->ctx != (*alike)->ctx || !device_is_same(next->device, (*alike)->device)))
            break;
        alike[found++] = next;
    }
    return found;
}

/* Forgets the memory: it stays the parent's. */
static void physical_leave_to_parent(nbla_physical_memory *p)
{
    lock_fd_deinit(&p->lock_fd);
    __atomic_store_n(&p->shared, false, __ATOMIC_RELAXED);
}

int chunks_alloc(nbla_physical_memory *const *p, size_t n)
{
    /* more descriptors than can be kept would be fetched again for mapping */
    unsigned flags = n > MEMCLIENT_BATCH_MAX ? MEMCLIENT_ALLOC_NO_DESCRIPTOR : 0;
    nbla_physical_memory *alike[MEMCLIENT_BATCH_MAX];
    size_t at = 0, found;

    for (size_t i = 0; i < n; i++)
        if (lock_fd_is_parents(&p[i]->lock_fd))
            physical_leave_to_parent(p[i]);
    while ((found = physical_gather(p, n, &at, alike))) {
        int r = physical_alloc_alike(found, alike, flags);

        if (r < 0)
            return r;
    }
    return 0;
}
