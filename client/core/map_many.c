/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mapping many buffers. A mapping waits for its buffer's descriptor, so the missing ones are asked for together. They
 * are no more than a context caches, so none is pushed out by the others before it is used.
 */
#include <errno.h>
#include <string.h>

#include "core/map.h"

_Static_assert(MEMORYD_BATCH_MAX <= CONTEXT_FDS_MAX, "all descriptors of a batch are kept");

/* A buffer that is mapped already can be mapped again without a descriptor. */
static int map_have_descriptors(unsigned n, struct memclient_buffer *const *bufs)
{
    struct memclient_buffer *unmapped[MEMORYD_BATCH_MAX];
    unsigned n_unmapped = 0;
    int r;

    space_lock_read();
    for (unsigned i = 0; i < n; i++)
        if (list_is_empty(&bufs[i]->mappings) && !(buffer_flags(bufs[i]) & MEMCLIENT_BUFFER_FOREIGN))
            unmapped[n_unmapped++] = bufs[i];
    space_unlock();
    if (n_unmapped < 2)
        return 0;
    r = buffer_cache_fds(n_unmapped, unmapped, context_deadline(unmapped[0]->ctx));
    /* mapping one by one may succeed, and else tells which buffer fails */
    return r == -EMFILE || r == -ESTALE || fail_status() ? 0 : r;
}

int map_buffers(unsigned n, struct memclient_buffer *const *bufs, const struct memclient_map_options *options,
                void **addresses)
{
    void *mapped[MEMORYD_BATCH_MAX];
    struct fail_saved saved;
    unsigned done;
    int r = map_have_descriptors(n, bufs);

    for (done = 0; !r && done < n; done++) {
        r = map_buffer(bufs[done], &options[done], &mapped[done]);
        if (r)
            break;
    }
    if (!r) {
        memcpy(addresses, mapped, n * sizeof(*mapped));
        return 0;
    }
    saved = fail_save(r);
    while (done-- > 0) {
        uint64_t length = options[done].length ? options[done].length : bufs[done]->bytes - options[done].offset;

        (void)map_unmap(bufs[done]->ctx, (uintptr_t)mapped[done], length);
    }
    return fail_restore(&saved);
}
