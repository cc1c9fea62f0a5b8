/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Committing transparent huge pages: see commit_thp() in slices.h.
 *
 * What takes time is clearing them, and that is what several processors do faster: two of them cleared 1 GiB in 57 ms
 * where one took 84. It is not so with the others. fallocate() holds the file's lock for as long as it works, so that
 * two threads take a third longer than one; and to populate base pages through a mapping costs three times as much as
 * to allocate them. Huge pages that are reserved, populated side by side, were there no sooner either.
 *
 * All threads take slices from one place, in order, and there, under its lock, is everything that is decided: whether
 * it goes on, whether the machine has room for what is under way, and which failure it is that is told. So whoever
 * cancels waits for one slice of each thread at most.
 */

#include "mem/slices.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "base/align.h"
#include "sys/schedule.h"

#define THREADS_MAX 64

struct crew {
    struct commit *commit;
    int fd;
    char *map; /* all of it */
    pthread_mutex_t lock;
    uint64_t next;      /* the rest under the lock */
    uint64_t under_way; /* bytes */
    int status;
};

/* Threads of all crews, in which commits of several buffers share the processors. */
static atomic_uint busy;

/*
 * Cuts the slice to whole huge pages; false if it has none here, and then it is cut to end where the next one
 * begins. A huge page must neither lie across the border of two nodes nor, as older kernels would have
 * it, reach beyond the end of the file, where nobody pays for it.
 */
static bool cut_to_huge(struct slice *slice, uint64_t thp)
{
    uint64_t to_next = align_up(slice->offset, thp) - slice->offset;

    if (!to_next && slice->length >= thp) {
        slice->length = (size_t)align_down(slice->length, thp);
        return true;
    }
    if (to_next && slice->length > to_next)
        slice->length = (size_t)to_next;
    return false;
}

static int crew_check_free(struct crew *crew, const struct slice *slice)
{
    struct slice all = *slice;

    if (!crew->under_way)
        return slice_check_available(crew->commit, slice);
    all.length += crew->under_way;
    return slice_ask_available(crew->commit, &all);
}

static bool take_slice(struct crew *crew, struct slice *ret, bool *ret_whole)
{
    struct commit *commit = crew->commit;
    bool taken;

    pthread_mutex_lock(&crew->lock);
    taken = !crew->status && crew->next < commit->plan.brief.bytes;
    if (taken) {
        *ret = slice_at(commit, crew->next, true);
        *ret_whole = cut_to_huge(ret, commit->page_size);
        crew->status = commit_check_cancel(commit);
        if (!crew->status)
            crew->status = crew_check_free(crew, ret);
        taken = !crew->status;
    }
    if (taken) {
        crew->next += ret->length;
        crew->under_way += ret->length;
    }
    pthread_mutex_unlock(&crew->lock);
    return taken;
}

static int fill_slice(const struct crew *crew, const struct slice *slice, bool whole)
{
    int r;

    if (whole)
        return sys_populate(crew->map + slice->offset, slice->length);
    do
        r = sys->fallocate(crew->fd, 0, (off_t)slice->offset, (off_t)slice->length);
    while (r < 0 && errno == EINTR);
    return r;
}

static void put_slice(struct crew *crew, const struct slice *slice, int r)
{
    int error = errno;

    pthread_mutex_lock(&crew->lock);
    crew->under_way -= slice->length;
    errno = error;
    if (r < 0 && !crew->status)
        crew->status = commit_refuse_errno(crew->commit, "a buffer");
    pthread_mutex_unlock(&crew->lock);
}

static void crew_work(struct crew *crew)
{
    struct slice slice;
    bool whole;

    while (take_slice(crew, &slice, &whole))
        put_slice(crew, &slice, fill_slice(crew, &slice, whole));
}

/* A thread that was made for it keeps to the processors that are next to the memory. */
static void *crew_help(void *argument)
{
    struct crew *crew = argument;
    const struct topology *topology = crew->commit->topology;
    cpu_set_t mine;
    uint32_t node = UINT32_MAX;
    struct slice slice;
    bool whole;

    sys_processors_get(&mine);
    while (take_slice(crew, &slice, &whole)) {
        if (!topology->one_node && slice.node != node) {
            node = slice.node;
            sys_processors_keep_to(&mine, topology_processors(topology, node));
        }
        put_slice(crew, &slice, fill_slice(crew, &slice, whole));
    }
    return NULL;
}

/* How many threads are worth their while and not at work elsewhere: 0 or several. */
static unsigned take_threads(const struct commit *commit)
{
    uint64_t slices = commit->plan.brief.bytes / COMMIT_SLICE;
    unsigned most = commit->threads < THREADS_MAX ? commit->threads : THREADS_MAX;
    unsigned now = atomic_load(&busy), n;

    do {
        n = now < most ? most - now : 0;
        if (n > slices)
            n = (unsigned)slices;
        if (n < 2)
            return 0;
    } while (!atomic_compare_exchange_weak(&busy, &now, now + n));
    return n;
}

static void work_together(struct crew *crew, unsigned n)
{
    pthread_t threads[THREADS_MAX];
    unsigned made = 0;

    while (made < n && !pthread_create(&threads[made], NULL, crew_help, crew))
        made++;
    if (!made)
        crew_work(crew);
    for (unsigned i = 0; i < made; i++)
        pthread_join(threads[i], NULL);
    atomic_fetch_sub(&busy, n);
}

int commit_thp(struct commit *commit, int t, uint64_t *huge)
{
    size_t size = (size_t)commit->plan.brief.bytes;
    struct crew crew = {.commit = commit, .fd = t, .lock = PTHREAD_MUTEX_INITIALIZER};
    unsigned n;

    crew.map = sys_map_aligned(t, 0, size, (size_t)commit->page_size, PROT_READ | PROT_WRITE, 0);
    if (crew.map == MAP_FAILED)
        return commit_refuse_errno(commit, "a mapping");
    /* without this advice, or where it is not taken, base pages are what there is */
    (void)sys->madvise(crew.map, size, MADV_HUGEPAGE);
    n = take_threads(commit);
    if (n)
        work_together(&crew, n);
    else
        crew_work(&crew);
    if (!crew.status)
        *huge = sys_huge_mapped(crew.map);
    (void)sys->munmap(crew.map, size);
    pthread_mutex_destroy(&crew.lock);
    return crew.status;
}
