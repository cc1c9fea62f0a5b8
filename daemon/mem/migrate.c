/* SPDX-License-Identifier: Apache-2.0 */
/* See migrate.h. */

#include "mem/migrate.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>

#include "base/align.h"
#include "base/cleanup.h"
#include "mem/slices.h"
#include "proto/status.h"

/* How often to try to move a slice, of which the kernel may be using a page at the moment. */
#define MOVE_TRIES 3

/* Maps a slice, populated so that the kernel finds its pages, and aligned so that it finds huge pages whole. */
static char *map_slice(const struct commit *commit, int fd, const struct slice *slice)
{
    size_t alignment = (size_t)(commit->pages == PAGES_THP ? commit->page_size : commit->topology->base_page);

    return sys_map_aligned(fd, slice->offset, slice->length, alignment, PROT_READ, MAP_POPULATE);
}

/* Returns what slice_probe() says in the end. Adds to *huge the bytes that are in huge pages. */
static int try_slice(struct commit *commit, int fd, const struct slice *slice, uint64_t *huge)
{
    unsigned long mask[SYS_NODE_MASK_WORDS];
    char *map = map_slice(commit, fd, slice);
    int seen;

    if (map == MAP_FAILED)
        return -1;
    node_mask(mask, slice->node);
    seen = slice_probe(commit, map, slice);
    if (seen > 0 && !sys->mbind(map, slice->length, commit_policy_mode(commit), mask, MPOL_MF_MOVE))
        seen = slice_probe(commit, map, slice);
    if (!seen && commit->pages == PAGES_THP)
        *huge += sys_huge_mapped(map);
    (void)sys->munmap(map, slice->length);
    return seen;
}

static int move_slice(struct commit *commit, int fd, const struct slice *slice, uint64_t *huge)
{
    int seen = 1;

    for (int try = 0; try < MOVE_TRIES && seen; try++)
        seen = try_slice(commit, fd, slice, huge);
    return seen;
}

/* Says why a page of the slice was not moved. If the node has enough memory, it is because somebody uses the page. */
static int refuse_slice(struct commit *commit, const struct slice *slice, int seen)
{
    int r = seen > 0 ? slice_ask_available(commit, slice) : slice_misplaced(commit, slice, seen);

    if (r)
        return r;
    return refuse(&commit->problem, STATUS_BUSY,
                  "the kernel moves no pages that somebody else has mapped or uses right now; unmap them there "
                  "and try again");
}

/* Moves slice by slice. *ret_reached gets the end of what may have been moved. */
static int migrate_there(struct migration *migration, int fd, uint64_t *ret_reached)
{
    struct commit *to = &migration->to;
    struct slice slice;
    int r = slices_place(to, fd);

    for (uint64_t offset = 0; offset < to->plan.brief.bytes && !r; offset += slice.length) {
        int seen;

        if (atomic_load(migration->cancel))
            return refuse(&to->problem, STATUS_TIMED_OUT, "moving was cancelled before it was complete");
        slice = slice_at(to, offset, true);
        r = slice_check_available(to, &slice);
        if (r)
            return r;
        *ret_reached = offset + slice.length;
        seen = move_slice(to, fd, &slice, &to->huge_bytes);
        if (seen)
            r = refuse_slice(to, &slice, seen);
    }
    return r;
}

/* Moves all slices back, even if one fails. False if the placement is strict and not all are back. */
static bool migrate_back(const struct migration *migration, int fd, uint64_t reached)
{
    struct commit back;
    struct slice slice;
    uint64_t huge = 0;
    bool all;

    commit_init(&back);
    back.topology = migration->to.topology;
    back.plan = migration->from;
    back.pages = migration->to.pages;
    back.page_size = migration->to.page_size;
    all = !slices_place(&back, fd);
    for (uint64_t offset = 0; offset < reached; offset += slice.length) {
        slice = slice_at(&back, offset, true);
        if (move_slice(&back, fd, &slice, &huge))
            all = false;
    }
    return all || !back.plan.brief.strict;
}

static int migrate_file(struct migration *migration, int t)
{
    struct commit *to = &migration->to;
    _cleanup_close_ int fd = sys->reopen(t, O_RDONLY);
    uint64_t reached = 0;
    int r;

    if (fd < 0)
        return commit_refuse_errno(to, "another description of a buffer");
    r = migrate_there(migration, fd, &reached);
    if (r)
        migration->displaced = !migrate_back(migration, fd, reached);
    else
        to->verified = true;
    return r;
}

int migrate_run(struct migration *migration, int t)
{
    migration->displaced = false;
    migration->to.status = migrate_file(migration, t);
    return migration->to.status;
}
