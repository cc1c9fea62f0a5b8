/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See spare.h.
 *
 * A bin has chunks of one context, device and size that were requested on one NUMA node, since memory lies on the node
 * of the requesting thread. There are few bins. One that is unused for long makes room for others.
 *
 * The lock is never held over a call of the broker. The library's own locks are taken after it, by threads and by a
 * fork alike: process_register() says why.
 */
#include "nbla/spare.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "nbla/process.h"

#define BINS 8
/* A bin is stale after so many allocations of others. */
#define STALE_AFTER 256
/* After memory was short, so many are requested one by one. */
#define BACK_OFF 64
/* The longest wait for released memory to be credited; each wait is twice as long as the one before. */
#define CREDITED_US_MOST 16000

struct key {
    struct memclient_context *ctx;
    struct device *device;
    uint64_t bytes; /* as requested, so that listings show what the program wants */
    unsigned node;
};

struct bin {
    struct key key; /* without a device the bin is free; else it has a reference to it */
    unsigned most;  /* chunks of one request */
    unsigned batch; /* chunks of the last request */
    unsigned back_off;
    uint64_t used_at;
    unsigned n;
    struct memclient_buffer *spares[SPARE_MOST]; /* the next one last */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct bin bins[BINS];
static unsigned n_spares; /* in all of them */
static uint64_t n_asked;

/* ---- bins -------------------------------------------------------------------------------------------------------- */

/* Buffers and devices to be released without the lock. */
struct spare_batch {
    unsigned n;
    unsigned n_devices;
    struct memclient_buffer *buffers[SPARE_MOST];
    struct device *devices[BINS];
};

static void spare_batch_end(struct spare_batch *batch)
{
    memclient_buffer_unref_many(batch->n, batch->buffers);
    while (batch->n_devices > 0)
        device_unref(batch->devices[--batch->n_devices]);
}

/* The caller has the lock, here and below. */
static void bin_empty(struct bin *bin, struct spare_batch *batch)
{
    n_spares -= bin->n;
    while (bin->n > 0)
        batch->buffers[batch->n++] = bin->spares[--bin->n];
    batch->devices[batch->n_devices++] = bin->key.device;
    *bin = (struct bin){0};
}

static struct bin *bin_find(const struct key *key)
{
    for (struct bin *bin = bins; bin < bins + BINS; bin++)
        if (bin->key.device && bin->key.ctx == key->ctx && bin->key.bytes == key->bytes && bin->key.node == key->node &&
            device_is_same(bin->key.device, key->device))
            return bin;
    return NULL;
}

/* It was unused for long, or the broker took its chunks, or their context was closed. */
static bool bin_is_stale(const struct bin *bin)
{
    return bin->key.device &&
           (n_asked - bin->used_at > STALE_AFTER || (bin->n && memclient_cache_is_lost(bin->spares[0])));
}

/* Makes a bin for buffers like this one, which was requested alone. NULL: there are enough bins. */
static struct bin *bin_make(const struct key *key, const struct memclient_buffer *buffer)
{
    for (struct bin *bin = bins; bin < bins + BINS; bin++) {
        uint64_t most = SPARE_MOST_BYTES / memclient_buffer_bytes(buffer);

        if (bin->key.device)
            continue;
        *bin = (struct bin){.key = *key, .most = most < SPARE_MOST ? (unsigned)most : SPARE_MOST, .batch = 1};
        (void)device_ref(key->device);
        return bin;
    }
    return NULL;
}

static struct memclient_buffer *bin_take(const struct key *key)
{
    struct memclient_buffer *buffer = NULL;
    struct bin *bin;

    pthread_mutex_lock(&lock);
    n_asked++;
    bin = bin_find(key);
    if (bin) {
        bin->used_at = n_asked;
        if (bin->n) {
            buffer = bin->spares[--bin->n];
            n_spares--;
        }
    }
    pthread_mutex_unlock(&lock);
    return buffer;
}

/* Memory is short: for some time chunks of this bin are requested one by one. */
static void bin_back_off(const struct key *key)
{
    struct bin *bin;

    pthread_mutex_lock(&lock);
    bin = bin_find(key);
    if (bin) {
        bin->batch = 1;
        bin->back_off = BACK_OFF;
    }
    pthread_mutex_unlock(&lock);
}

/* The number of chunks of the next request. */
static unsigned bin_plan(const struct key *key)
{
    struct spare_batch batch = {0};
    unsigned n = 1;
    struct bin *bin;

    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < BINS; i++)
        if (bin_is_stale(&bins[i]))
            bin_empty(&bins[i], &batch);
    bin = bin_find(key);
    if (bin && bin->back_off) {
        bin->back_off--;
    } else if (bin) {
        n = 2 * bin->batch < bin->most ? 2 * bin->batch : bin->most;
        if (n > SPARE_MOST - n_spares)
            n = SPARE_MOST - n_spares;
        n = n ? n : 1;
    }
    pthread_mutex_unlock(&lock);
    spare_batch_end(&batch);
    return n;
}

/* Caches all but the first `*keep` of n. 0, or why it does not cache more. */
static int bin_keep(unsigned n, struct memclient_buffer *const *buffers, unsigned *keep)
{
    for (*keep = n; *keep > 1; --*keep) {
        int r = memclient_cache_put(buffers[*keep - 1]);

        if (r)
            return r;
    }
    return 0;
}

/* Makes all but the first of n spare, as far as they can be cached. */
static void bin_fill(const struct key *key, unsigned n, struct memclient_buffer *const *buffers)
{
    struct bin *bin;
    unsigned first;
    int r;

    process_register();
    r = bin_keep(n, buffers, &first);
    pthread_mutex_lock(&lock);
    bin = bin_find(key);
    if (!bin)
        bin = bin_make(key, *buffers);
    if (bin) {
        bin->used_at = n_asked;
        bin->batch = r ? 1 : n;
        bin->back_off = r ? BACK_OFF : bin->back_off;
        bin->most = r == -EOPNOTSUPP ? 1 : bin->most;
    }
    while (bin && n > first && bin->n < SPARE_MOST && n_spares < SPARE_MOST) {
        bin->spares[bin->n++] = buffers[--n];
        n_spares++;
    }
    pthread_mutex_unlock(&lock);
    memclient_buffer_unref_many(n - 1, buffers + 1);
}

bool spare_release_all(void)
{
    struct spare_batch batch = {0};
    bool is_any;

    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < BINS; i++)
        if (bins[i].key.device)
            bin_empty(&bins[i], &batch);
    pthread_mutex_unlock(&lock);
    is_any = batch.n;
    spare_batch_end(&batch);
    return is_any;
}

/* ---- allocating -------------------------------------------------------------------------------------------------- */

/* Where memory is short it releases the spare chunks and tries again, for a while: the broker credits the last granule
 * of a chunk only once it knows that the descriptor is closed. */
int spare_alloc_many(struct memclient_context *ctx, size_t n, const uint64_t *sizes,
                     const struct memclient_alloc_options *options, struct memclient_buffer **buffers)
{
    int r = memclient_alloc_many(ctx, n, sizes, options, buffers);

    if (!r || !memclient_error_status() || !spare_release_all())
        return r;
    for (unsigned us = 500; us <= CREDITED_US_MOST; us *= 2) {
        r = memclient_alloc_many(ctx, n, sizes, options, buffers);
        if (!r || !memclient_error_status())
            return r;
        (void)usleep(us);
    }
    return memclient_alloc_many(ctx, n, sizes, options, buffers);
}

/* Allocates several, of which the first is the caller's. -EAGAIN: to be tried with one. */
static int bin_alloc(const struct key *key, unsigned n, const struct memclient_alloc_options *options,
                     struct memclient_buffer **buffers)
{
    uint64_t sizes[SPARE_MOST];
    int r;

    for (unsigned i = 0; i < n; i++)
        sizes[i] = key->bytes;
    r = memclient_alloc_many(key->ctx, n, sizes, options, buffers);
    if (!r || (r != -EMFILE && !memclient_error_status()))
        return r;
    bin_back_off(key);
    return -EAGAIN;
}

int spare_alloc(struct memclient_context *ctx, struct device *device, uint64_t bytes, unsigned flags,
                struct memclient_buffer **buffer)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct key key = {.ctx = ctx, .device = device, .bytes = bytes};
    struct memclient_buffer *buffers[SPARE_MOST];
    bool is_small = bytes <= SPARE_MOST_BYTES / 2;
    int r = -EAGAIN;
    unsigned n;

    (void)getcpu(NULL, &key.node);
    while (is_small && (*buffers = bin_take(&key))) {
        if (!memclient_cache_take(*buffers)) {
            *buffer = *buffers;
            return 0;
        }
        (void)memclient_buffer_unref(*buffers);
        bin_back_off(&key);
    }
    device_choose(device, &options);
    options.flags = MEMCLIENT_ALLOC_NO_HOME;
    n = is_small ? bin_plan(&key) : 1;
    if (n > 1)
        r = bin_alloc(&key, n, &options, buffers);
    if (r == -EAGAIN) {
        n = 1;
        options.flags |= flags;
        r = spare_alloc_many(ctx, 1, &bytes, &options, buffers);
    }
    if (r)
        return r;
    *buffer = *buffers;
    if (is_small)
        bin_fill(&key, n, buffers);
    return 0;
}

/* ---- around a fork ----------------------------------------------------------------------------------------------- */

void spare_fork_prepare(void)
{
    pthread_mutex_lock(&lock);
}

void spare_fork_parent(void)
{
    pthread_mutex_unlock(&lock);
}

/* The spare chunks are the parent's, which could not release them while the child has their descriptors. */
void spare_fork_child(void)
{
    pthread_mutex_unlock(&lock);
    (void)pthread_mutex_init(&lock, NULL);
    (void)spare_release_all();
}
