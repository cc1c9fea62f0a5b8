/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See spare.h.
 *
 * Chunks of one kind are in a bin: of one context, device and size, asked for on one NUMA node, since memory lies where
 * the thread runs that asks for it. There are few bins; one that was not used for long makes room for others.
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
/* A bin is stale when so many others were asked for since. */
#define STALE_AFTER 256
/* After memory was short, so many are asked for one by one. */
#define BACK_OFF 64
/* How long is waited at last for what was given up, each time twice as long as before. */
#define CREDITED_US_MOST 16000

struct key {
    struct memclient *ctx;
    struct device *device;
    uint64_t bytes; /* as asked for, so that listings tell what the program wants */
    unsigned node;
};

struct bin {
    struct key key; /* without a device the bin is free; else that is counted */
    unsigned most;  /* that one request may ask for */
    unsigned batch; /* that the last one has asked for */
    unsigned back_off;
    uint64_t used_at;
    unsigned n;
    struct memclient_buffer *spares[SPARE_MOST]; /* the next one last */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct bin bins[BINS];
static unsigned n_spares; /* in all of them */
static uint64_t n_asked;

/* ---- bins ------------------------------------------------------------------------------------------------ */

/* What is to be done without the lock: buffers and devices to be given up. */
struct leaving {
    unsigned n;
    unsigned n_devices;
    struct memclient_buffer *buffers[SPARE_MOST];
    struct device *devices[BINS];
};

static void leaving_end(struct leaving *leaving)
{
    memclient_buffer_unref_many(leaving->n, leaving->buffers);
    while (leaving->n_devices > 0)
        device_unref(leaving->devices[--leaving->n_devices]);
}

/* With the lock, here and below. */
static void bin_empty(struct bin *bin, struct leaving *leaving)
{
    while (bin->n > 0)
        leaving->buffers[leaving->n++] = bin->spares[--bin->n], n_spares--;
    leaving->devices[leaving->n_devices++] = bin->key.device;
    *bin = (struct bin){0};
}

static struct bin *bin_find(const struct key *key)
{
    for (struct bin *bin = bins; bin < bins + BINS; bin++)
        if (bin->key.device && bin->key.ctx == key->ctx && bin->key.bytes == key->bytes &&
            bin->key.node == key->node && device_is_same(bin->key.device, key->device))
            return bin;
    return NULL;
}

/* Not used for long, or what it has is the broker's by now, or of a context that was closed. */
static bool bin_is_stale(const struct bin *bin)
{
    return bin->key.device &&
           (n_asked - bin->used_at > STALE_AFTER || (bin->n && memclient_cache_is_lost(bin->spares[0])));
}

/* For a buffer that was asked for alone, and is as all of them will be. NULL: there are enough bins. */
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

/* Others need memory: one by one, for some time. */
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

/* How many the next request asks for. */
static unsigned bin_plan(const struct key *key)
{
    struct leaving leaving = {0};
    unsigned n = 1;
    struct bin *bin;

    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < BINS; i++)
        if (bin_is_stale(&bins[i]))
            bin_empty(&bins[i], &leaving);
    bin = bin_find(key);
    if (bin && bin->back_off) {
        bin->back_off--;
    } else if (bin) {
        n = 2 * bin->batch < bin->most ? 2 * bin->batch : bin->most;
        if (n > SPARE_MOST - n_spares)
            n = SPARE_MOST - n_spares;
        n += !n;
    }
    pthread_mutex_unlock(&lock);
    leaving_end(&leaving);
    return n;
}

/* All but the first `*keep` of n are kept. 0, or why some are not. */
static int bin_keep(unsigned n, struct memclient_buffer *const *buffers, unsigned *keep)
{
    for (*keep = n; *keep > 1; --*keep) {
        int r = memclient_cache_put(buffers[*keep - 1]);

        if (r)
            return r;
    }
    return 0;
}

/* What came beside the first of n is spare, as far as that is kept. */
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
    struct leaving leaving = {0};
    bool is_any;

    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < BINS; i++)
        if (bins[i].key.device)
            bin_empty(&bins[i], &leaving);
    pthread_mutex_unlock(&lock);
    is_any = leaving.n;
    leaving_end(&leaving);
    return is_any;
}

/* ---- allocating ------------------------------------------------------------------------------------------ */

/* A last granule of those that the broker took is credited when it has heard that their descriptors are closed. */
int spare_alloc_many(struct memclient *ctx, size_t n, const uint64_t *sizes,
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

/* Several at once, of which the first is the caller's. -EAGAIN: then alone. */
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

int spare_alloc(struct memclient *ctx, struct device *device, uint64_t bytes, unsigned flags,
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
    options.flags = MEMCLIENT_NO_ADDRESS;
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

/* ---- around a fork --------------------------------------------------------------------------------------- */

void spare_fork_prepare(void)
{
    pthread_mutex_lock(&lock);
}

void spare_fork_parent(void)
{
    pthread_mutex_unlock(&lock);
}

/* They are the parent's, who could not give them up as long as the child has their descriptors. */
void spare_fork_child(void)
{
    pthread_mutex_unlock(&lock);
    (void)pthread_mutex_init(&lock, NULL);
    (void)spare_release_all();
}
