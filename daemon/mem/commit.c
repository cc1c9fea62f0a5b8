/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See commit.h. Everything here works in slices: so much of the buffer is mapped, allocated and looked at
 * at a time that neither page tables nor the time between two looks at the cancel flag grow with it.
 * Whatever fails, closing T is the whole undoing: its inode goes, and with it every page so far.
 */

#include "mem/commit.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#include "base/align.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/steal.h"
#include "proto/status.h"
#include "sys/sys.h"

/* What a commit leaves the rest of the machine. */
#define HEADROOM (UINT64_C(64) << 20)
/* Small commits ask how much memory there is once for so many bytes of them, since asking costs as much. */
#define UNASKED_MAX (UINT64_C(16) << 20)
/* Pages asked about at once. */
#define VERIFY_PAGES 512
/* A page that was swapped out while we looked is fetched again; not for ever. */
#define VERIFY_TRIES 3

static _Atomic uint64_t unasked;

struct slice {
    uint64_t offset;
    size_t length;
    uint32_t node; /* physical */
};

static int refuse_errno(struct commit *commit, const char *what)
{
    int error = errno;

    switch (error) {
    case EMFILE:
    case ENFILE:
        return refuse(&commit->problem, STATUS_NO_DESCRIPTORS,
                      "memoryd may have no more descriptors; release something, or raise its LimitNOFILE");
    case ENOMEM:
    case ENOSPC:
        if (commit->pages == PAGES_HUGETLB)
            return refuse(&commit->problem, STATUS_NO_MEMORY,
                          "the system's huge pages of %llu bytes are used up by others; set more of them "
                          "aside, or ask for other pages",
                          (unsigned long long)commit->page_size);
        return refuse(&commit->problem, STATUS_NO_MEMORY,
                      "the kernel had no memory for %s (%llu bytes); free some, or ask for less", what,
                      (unsigned long long)commit->plan.brief.bytes);
    case ENOENT:
        return refuse(&commit->problem, STATUS_NOT_SUPPORTED, "memoryd needs /proc to be mounted");
    default:
        return refuse(&commit->problem, STATUS_NOT_SUPPORTED, "the kernel refused %s: %s", what,
                      strerror(error));
    }
}

static int check_cancel(struct commit *commit)
{
    if (!atomic_load(&commit->cancel))
        return 0;
    return refuse(&commit->problem, STATUS_TIMED_OUT, "the allocation was cancelled before it was complete");
}

/*
 * The slice at `offset`: at most COMMIT_SLICE (or one huge page, if that is more), and if `one_node`, not
 * beyond what lies on the same node.
 */
static struct slice slice_at(const struct commit *commit, uint64_t offset, bool one_node)
{
    uint64_t most = commit->page_size > COMMIT_SLICE ? commit->page_size : COMMIT_SLICE;
    uint64_t length = commit->plan.brief.bytes - offset;
    uint64_t run;
    uint32_t number = plan_node_of(&commit->plan, offset, &run);
    const struct topology_node *node = topology_node(commit->topology, number);

    assert(node);
    if (one_node && run < length)
        length = run;
    if (length > most)
        length = most;
    return (struct slice){.offset = offset, .length = (size_t)length, .node = node->physical};
}

static int check_room(struct commit *commit, const struct slice *slice)
{
    bool strict = commit->plan.brief.strict && !commit->topology->one_node;
    uint64_t available;

    if (slice->length <= COMMIT_INLINE_MAX) {
        if (atomic_fetch_add(&unasked, slice->length) < UNASKED_MAX)
            return 0;
        atomic_store(&unasked, 0);
    }
    available = sys->available(strict ? (int)slice->node : -1);
    if (available >= HEADROOM && available - HEADROOM >= slice->length)
        return 0;
    return refuse(&commit->problem, STATUS_NO_MEMORY,
                  "%s %u has only %llu bytes left that nobody uses; free some, or ask for less",
                  strict ? "node" : "the machine with node", slice->node, (unsigned long long)available);
}

static void node_mask(unsigned long mask[SYS_NODE_MASK_WORDS], uint32_t node)
{
    const unsigned bits = 8 * sizeof(mask[0]);

    assert(node < SYS_NODE_MASK_BITS);
    memset(mask, 0, SYS_NODE_MASK_WORDS * sizeof(mask[0]));
    mask[node / bits] = 1UL << node % bits;
}

static int policy_mode(const struct commit *commit)
{
    return commit->plan.brief.strict ? MPOL_BIND : MPOL_PREFERRED;
}

static int refuse_node(struct commit *commit, uint32_t node)
{
    if (errno == EINVAL)
        return refuse(&commit->problem, STATUS_MISPLACED,
                      "the kernel does not let memoryd use node %u; see the memory nodes of its cpuset", node);
    return refuse_errno(commit, "a placement policy");
}

/* Gives each part of the file its node. A part is mapped alone, so that the mappings never are many. */
static int place_file(struct commit *commit, int t)
{
    unsigned long mask[SYS_NODE_MASK_WORDS];
    uint64_t offset = 0;
    int r = 0;

    if (commit->topology->one_node)
        return 0;
    while (offset < commit->plan.brief.bytes && !r) {
        struct slice slice = slice_at(commit, offset, true);
        uint64_t run;
        size_t length;
        void *map;

        (void)plan_node_of(&commit->plan, offset, &run);
        if (!checked_size(run, &length)) {
            errno = ENOMEM;
            return refuse_errno(commit, "a placement policy");
        }
        map = sys->mmap(NULL, length, PROT_READ, MAP_SHARED, t, (off_t)offset);
        if (map == MAP_FAILED)
            return refuse_errno(commit, "a mapping");
        node_mask(mask, slice.node);
        if (sys->mbind(map, length, policy_mode(commit), mask) < 0)
            r = refuse_node(commit, slice.node);
        (void)sys->munmap(map, length);
        offset += run;
        if (!r)
            r = check_cancel(commit);
    }
    return r;
}

static int allocate(struct commit *commit, int t, const struct slice *slice)
{
    while (sys->fallocate(t, 0, (off_t)slice->offset, (off_t)slice->length) < 0) {
        int r;

        if (errno != EINTR)
            return refuse_errno(commit, "a buffer");
        r = check_cancel(commit);
        if (r)
            return r;
    }
    return 0;
}

static int commit_base(struct commit *commit, int t)
{
    bool one_node = commit->plan.brief.strict;
    struct slice slice;
    int r = 0;

    for (uint64_t offset = 0; offset < commit->plan.brief.bytes && !r; offset += slice.length) {
        slice = slice_at(commit, offset, one_node);
        r = check_cancel(commit);
        if (!r)
            r = check_room(commit, &slice);
        if (!r)
            r = allocate(commit, t, &slice);
    }
    return r;
}

static int populate_huge(struct commit *commit, int t, const struct slice *slice, uint64_t *huge)
{
    size_t thp = (size_t)commit->page_size;
    void *map = sys_map_aligned(t, slice->offset, slice->length, thp, PROT_READ | PROT_WRITE);
    int r = 0;

    if (map == MAP_FAILED)
        return refuse_errno(commit, "a mapping");
    /* without this advice, or where it is not taken, base pages are what there is */
    (void)sys->madvise(map, slice->length, MADV_HUGEPAGE);
    if (sys_populate(map, slice->length) < 0)
        r = refuse_errno(commit, "a buffer");
    else
        *huge += sys_huge_mapped(map);
    (void)sys->munmap(map, slice->length);
    return r;
}

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

static int commit_thp(struct commit *commit, int t, uint64_t *huge)
{
    struct slice slice;
    int r = 0;

    for (uint64_t offset = 0; offset < commit->plan.brief.bytes && !r; offset += slice.length) {
        bool whole;

        slice = slice_at(commit, offset, true);
        whole = cut_to_huge(&slice, commit->page_size);
        r = check_cancel(commit);
        if (!r)
            r = check_room(commit, &slice);
        if (!r)
            r = whole ? populate_huge(commit, t, &slice, huge) : allocate(commit, t, &slice);
    }
    return r;
}

static int allocate_hugetlb(struct commit *commit, int t)
{
    unsigned long mask[SYS_NODE_MASK_WORDS];
    struct slice slice;
    int r = 0;

    for (uint64_t offset = 0; offset < commit->plan.brief.bytes && !r; offset += slice.length) {
        slice = slice_at(commit, offset, true);
        r = check_cancel(commit);
        if (!r && !commit->topology->one_node) {
            node_mask(mask, slice.node);
            if (sys->set_mempolicy(policy_mode(commit), mask) < 0)
                r = refuse_node(commit, slice.node);
        }
        if (!r)
            r = allocate(commit, t, &slice);
    }
    return r;
}

/* The policy of the thread decides, and is what it was before when this returns. */
static int commit_hugetlb(struct commit *commit, int t)
{
    unsigned long before[SYS_NODE_MASK_WORDS] = {0};
    bool any = false;
    int mode;
    int r;

    if (commit->topology->one_node)
        return allocate_hugetlb(commit, t);
    if (sys->get_mempolicy(&mode, before) < 0)
        return refuse_errno(commit, "to tell the placement policy");
    r = allocate_hugetlb(commit, t);
    for (size_t i = 0; i < SYS_NODE_MASK_WORDS; i++)
        any = any || before[i];
    if (sys->set_mempolicy(mode, any ? before : NULL) < 0)
        (void)sys->set_mempolicy(MPOL_DEFAULT, NULL);
    return r;
}

/* 0 all on the node, 1 one is elsewhere, -1 one cannot be seen now */
static int look_at_pages(char *map, const struct slice *slice, size_t step)
{
    void *pages[VERIFY_PAGES];
    int where[VERIFY_PAGES];
    size_t at = 0;

    while (at < slice->length) {
        unsigned long n = 0;

        for (; n < VERIFY_PAGES && at < slice->length; n++, at += step) {
            pages[n] = map + at;
            where[n] = -ENOENT;
        }
        if (sys->page_nodes(n, pages, where) < 0)
            return -1;
        for (unsigned long i = 0; i < n; i++) {
            if (where[i] < 0)
                return -1;
            if ((uint32_t)where[i] != slice->node)
                return 1;
        }
    }
    return 0;
}

static int verify_slice(struct commit *commit, int t, const struct slice *slice)
{
    size_t step = (size_t)(commit->pages == PAGES_HUGETLB ? commit->page_size
                                                          : commit->topology->base_page);
    int seen = -1;

    for (int try = 0; try < VERIFY_TRIES && seen < 0; try++) {
        /* a mapping that was not touched says nothing: the kernel touches it here */
        char *map = sys->mmap(NULL, slice->length, PROT_READ, MAP_SHARED | MAP_POPULATE, t,
                              (off_t)slice->offset);

        if (map == MAP_FAILED)
            return refuse_errno(commit, "a mapping");
        seen = look_at_pages(map, slice, step);
        (void)sys->munmap(map, slice->length);
    }
    if (!seen)
        return 0;
    return refuse(&commit->problem, STATUS_MISPLACED,
                  seen < 0 ? "the kernel does not tell whether all pages are on node %u"
                           : "the kernel did not put all pages on node %u; free memory there, or ask for a "
                             "preference instead",
                  slice->node);
}

static int verify(struct commit *commit, int t)
{
    struct slice slice;
    int r = 0;

    if (commit->topology->one_node)
        return 0;
    for (uint64_t offset = 0; offset < commit->plan.brief.bytes && !r; offset += slice.length) {
        slice = slice_at(commit, offset, true);
        r = check_cancel(commit);
        if (!r)
            r = verify_slice(commit, t, &slice);
    }
    return r;
}

static int make_file(struct commit *commit, int *ret)
{
    _cleanup_close_ int original = -1;
    _cleanup_close_ int t = -1;
    off_t size;

    if (!checked_off(commit->plan.brief.bytes, &size)) {
        errno = EFBIG;
        return refuse_errno(commit, "a file of this size");
    }
    original = sys_memfd_new(commit->label, commit->pages == PAGES_HUGETLB ? commit->page_size : 0);
    if (original < 0)
        return refuse_errno(commit, "a memfd");
    if (sys->fchmod(original, 0600) < 0)
        return refuse_errno(commit, "the mode of a buffer");
    t = sys->reopen(original, O_RDWR);
    if (t < 0)
        return refuse_errno(commit, "another description of a buffer");
    if (sys->ftruncate(t, size) < 0)
        return refuse_errno(commit, "the size of a buffer");
    *ret = steal_fd(&t);
    return 0;
}

static int fill_file(struct commit *commit, int t, uint64_t *huge)
{
    int r = 0;

    if (commit->pages != PAGES_HUGETLB)
        r = place_file(commit, t);
    if (r || commit->lazy)
        return r;
    switch (commit->pages) {
    case PAGES_ANY:
    case PAGES_BASE:
        r = commit_base(commit, t);
        break;
    case PAGES_THP:
        r = commit_thp(commit, t, huge);
        break;
    case PAGES_HUGETLB:
        r = commit_hugetlb(commit, t);
        break;
    }
    if (!r && commit->plan.brief.strict)
        r = verify(commit, t);
    return r;
}

/* Where shmem_enabled is "always", older kernels give the end of any file a huge page: back with what is too much. */
static int trim(struct commit *commit, int t)
{
    uint64_t bytes = commit->plan.brief.bytes;
    uint64_t thp = commit->topology->thp_size;
    struct stat st;

    if (commit->pages == PAGES_HUGETLB || !thp)
        return 0;
    if (sys->fstat(t, &st) < 0)
        return refuse_errno(commit, "to measure a buffer");
    if ((uint64_t)st.st_blocks * 512 > bytes &&
        sys->fallocate(t, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)bytes,
                       (off_t)(align_up(bytes, thp) - bytes)) < 0)
        return refuse_errno(commit, "to trim a buffer");
    return 0;
}

static int run(struct commit *commit)
{
    int seals = F_SEAL_SHRINK | F_SEAL_GROW | (commit->publishable ? 0 : F_SEAL_SEAL);
    _cleanup_close_ int t = -1;
    uint64_t huge = 0;
    struct stat st;
    int r;

    r = make_file(commit, &t);
    if (!r)
        r = fill_file(commit, t, &huge);
    if (r)
        return r;
    r = trim(commit, t);
    if (r)
        return r;
    if (sys->add_seals(t, seals) < 0)
        return refuse_errno(commit, "to seal a buffer");
    if (sys->fstat(t, &st) < 0)
        return refuse_errno(commit, "to identify a buffer");
    commit->dev = st.st_dev;
    commit->ino = st.st_ino;
    commit->huge_bytes = huge;
    commit->verified = commit->plan.brief.strict && !commit->lazy;
    commit->fd = steal_fd(&t);
    return 0;
}

void commit_init(struct commit *commit)
{
    memset(commit, 0, sizeof(*commit));
    atomic_init(&commit->cancel, false);
    commit->fd = -1;
}

void commit_deinit(struct commit *commit)
{
    commit->fd = fd_close(commit->fd);
}

bool commit_is_small(const struct commit *commit)
{
    if (commit->lazy)
        return commit->topology->one_node || !commit->plan.brief.part_size;
    return commit->pages == PAGES_BASE && commit->plan.brief.bytes <= COMMIT_INLINE_MAX;
}

int commit_run(struct commit *commit)
{
    commit->status = run(commit);
    return commit->status;
}
