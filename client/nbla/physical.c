/* SPDX-License-Identifier: Apache-2.0 */
/* See physical.h. */
#include "nbla/physical.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "nbla/error.h"

nbla_physical_memory *nbla_physical_memory_new(memclient *ctx, size_t bytes, const char *device_id)
{
    struct device *device = device_new(ctx, device_id);
    nbla_physical_memory *p;

    if (!device)
        return NULL;
    p = calloc(1, sizeof(*p));
    if (!p) {
        device_unref(device);
        (void)fail(NBLA_ERROR_MEMORY, "no memory for an object");
        return NULL;
    }
    p->refs = 1;
    p->ctx = ctx;
    p->device = device;
    p->bytes = bytes ? bytes : 1;
    return p;
}

nbla_physical_memory *physical_new_opened(struct memclient_buffer *buffer, uint64_t offset, uint64_t length,
                                          void *wanted)
{
    nbla_physical_memory *p = calloc(1, sizeof(*p));

    if (!p) {
        (void)fail(NBLA_ERROR_MEMORY, "no memory for an object");
        return NULL;
    }
    p->refs = 1;
    p->ctx = memclient_buffer_context(buffer);
    p->bytes = (size_t)length;
    p->offset = offset;
    p->wanted = (uintptr_t)wanted;
    holding_init(&p->holding, buffer, true);
    return p;
}

nbla_physical_memory *nbla_physical_memory_ref(nbla_physical_memory *p)
{
    if (p)
        __atomic_fetch_add(&p->refs, 1, __ATOMIC_RELAXED);
    return p;
}

void nbla_physical_memory_unref(nbla_physical_memory *p)
{
    if (!p || __atomic_sub_fetch(&p->refs, 1, __ATOMIC_ACQ_REL))
        return;
    holding_deinit(&p->holding);
    device_unref(p->device);
    free(p);
}

int physical_alloc(nbla_physical_memory *p)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *buffer;
    int r;

    if (p->holding.buffer)
        return 0;
    device_choose(p->device, &options);
    options.flags = MEMCLIENT_NO_ADDRESS;
    r = memclient_alloc(p->ctx, p->bytes, &options, &buffer);
    if (r)
        return fail_alloc(r);
    holding_init(&p->holding, buffer, false);
    p->bytes = (size_t)memclient_buffer_bytes(buffer);
    return 0;
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
    return p->holding.buffer;
}

uint64_t physical_home(const nbla_physical_memory *p)
{
    uint64_t home = p->holding.opened ? (uintptr_t)memclient_buffer_address(p->holding.buffer) : 0;

    return home ? home + p->offset : 0;
}

/* ---- lists ----------------------------------------------------------------------------------------------- */

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
    while (chunks->n > n)
        nbla_physical_memory_unref(chunks->at[--chunks->n]);
}

void chunks_clear(struct chunks *chunks)
{
    chunks_cut(chunks, 0);
    free(chunks->at);
    chunks->at = NULL;
}
