/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mapping many buffers. What a mapping waits for is its buffer's descriptor: those that are missing are asked for
 * together. They are as many as a context keeps, so none is pushed out by the others before it is used.
 */
#include <errno.h>
#include <string.h>

#include "core/map.h"

_Static_assert(MEMORYD_BATCH_MAX <= CONTEXT_FDS_MAX, "all descriptors of a batch are kept");

/* What is mapped already is mapped again by that. */
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
    /* one by one it may do, and else that will tell of which it does not */
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
