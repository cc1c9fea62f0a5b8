/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Committing transparent huge pages: see commit_thp() in slices.h.
 *
 * Clearing the pages takes the time, and several processors do that faster: two cleared 1 GiB in 57 ms, one in 84 ms.
 * No other pages are committed by several threads. fallocate() holds the file's lock while it works, so that two
 * threads take a third longer than one; populating base pages through a mapping costs three times as much as allocating
 * them; and reserved huge pages were not there sooner either when several threads populated them.
 *
 * The threads, a crew, take slices in order from one place. There, under the crew's lock, everything is decided:
 * whether to go on, whether the machine has room for what is under way, and which failure is reported. So cancelling
 * takes one slice of each thread at most.
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
    /* under the lock: */
    uint64_t next;      /* offset of the next slice */
    uint64_t under_way; /* bytes */
    int status;
};

/* Threads of all crews: commits of several buffers share the processors. */
static atomic_uint busy;

/*
 * Cuts the slice to whole huge pages. False: none begins here, and the slice is cut to end where one does. A huge page
 * must not lie across the border of two nodes, nor reach beyond the end of the file, where nobody pays for it; older
 * kernels allow that.
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
    taken = !crew->status && !commit->paused && crew->next < commit->plan.brief.bytes;
    /* not before the first one, so that it gets on */
    if (taken && crew->next > commit->done && commit_should_pause(commit)) {
        commit->paused = true;
        taken = false;
    }
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

/* As crew_work(), in a thread of its own, which runs on the processors next to the memory. */
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

/* Reserves threads, as many as there are slices for and other crews leave: several, or 0 for the caller alone. */
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
    struct crew crew = {.commit = commit, .fd = t, .lock = PTHREAD_MUTEX_INITIALIZER, .next = commit->done};
    unsigned n;

    crew.map = sys_map_aligned(t, 0, size, (size_t)commit->page_size, PROT_READ | PROT_WRITE, 0);
    if (crew.map == MAP_FAILED)
        return commit_refuse_errno(commit, "a mapping");
    /* where the kernel does not take this advice there are base pages */
    (void)sys->madvise(crew.map, size, MADV_HUGEPAGE);
    n = take_threads(commit);
    if (n)
        work_together(&crew, n);
    else
        crew_work(&crew);
    /* slices are taken in order, and those that were taken are filled */
    commit->done = crew.next;
    if (!crew.status)
        *huge += sys_huge_mapped(crew.map);
    (void)sys->munmap(crew.map, size);
    pthread_mutex_destroy(&crew.lock);
    return crew.status;
}
