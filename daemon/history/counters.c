/* SPDX-License-Identifier: Apache-2.0 */
/* See counters.h. */
#include "history/counters.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "log/log.h"
#include "sys/sys.h"

#define COUNTERS_MAGIC UINT64_C(0x746e756f63656d6d) /* "mmecount" */
#define COUNTERS_MAJOR 1

static_assert(sizeof(struct counters_file) == 64 + 128 * 136 + 64 * 8 + 16 * 8 + 64 * 8, "layout");
static_assert(COUNTERS_BUCKETS <= sizeof(((struct counters_replies *)0)->buckets) / sizeof(uint64_t), "layout");

static const uint64_t bounds[COUNTERS_BUCKETS] = {
#define X(ns, text) ns,
    COUNTERS_BOUNDS(X)
#undef X
};

/* Takes the descriptor on success. */
static int counters_map(struct counters **ret, int *fd)
{
    _cleanup_free_ struct counters *counters = calloc(1, sizeof(*counters));
    void *file;

    if (!counters)
        return fatal(-ENOMEM);
    file = sys->mmap(NULL, sizeof(*counters->file), PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    if (file == MAP_FAILED)
        return fatal(-errno);
    counters->file = file;
    counters->fd = steal_fd(fd);
    *ret = steal_ptr(&counters);
    return 0;
}

int counters_new(struct counters **ret)
{
    _cleanup_close_ int fd = sys_memfd_new_fixed("memoryd:counters", sizeof(struct counters_file));
    struct counters *counters;
    int r;

    if (fd < 0)
        return fatal(-errno);
    r = counters_map(&counters, &fd);
    if (r)
        return r;
    counters->file->major = COUNTERS_MAJOR;
    counters->file->size = sizeof(struct counters_file);
    counters->file->magic = COUNTERS_MAGIC;
    *ret = counters;
    return 0;
}

int counters_adopt(struct counters **ret, int fd)
{
    const struct counters_file *file;
    struct counters *counters;
    int r;

    if (!sys_memfd_is_fixed(fd, sizeof(*file)))
        return HISTORY_E_FORMAT;
    r = counters_map(&counters, &fd);
    if (r)
        return r;
    file = counters->file;
    if (file->magic != COUNTERS_MAGIC || file->major != COUNTERS_MAJOR || file->size != sizeof(*file)) {
        (void)steal_fd(&counters->fd);
        counters_free(counters);
        return HISTORY_E_FORMAT;
    }
    *ret = counters;
    return 0;
}

struct counters *counters_free(struct counters *counters)
{
    if (!counters)
        return NULL;
    (void)sys->munmap(counters->file, sizeof(*counters->file));
    (void)fd_close(counters->fd);
    free(counters);
    return NULL;
}

void counters_reply(struct counters *counters, uint16_t method, uint64_t ns)
{
    struct counters_replies *replies;
    unsigned bucket = 0;

    if (method >= COUNTERS_METHODS)
        return;
    replies = &counters->file->replies[method];
    while (ns > bounds[bucket])
        bucket++;
    replies->buckets[bucket]++;
    replies->ns += ns;
}

void counters_refusal(struct counters *counters, uint32_t status)
{
    if (status < COUNTERS_STATUSES)
        counters->file->refusals[status]++;
}

void counters_end(struct counters *counters, enum history_end end)
{
    counters->file->ends[end]++;
}

void counters_wait(struct counters *counters, uint64_t ms)
{
    counters->file->waits++;
    counters->file->waits_ms += ms;
}

enum history_end counters_start(struct counters *counters)
{
    bool left = counters->file->left;

    counters->file->recoveries[!left]++;
    counters->file->left = 0;
    return left ? HISTORY_END_GOODBYE : HISTORY_END_DIED;
}

void counters_leave(struct counters *counters)
{
    counters->file->left = 1;
}
