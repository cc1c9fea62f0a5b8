/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See commit.h. Everything here works in slices. Whatever fails, closing T is the whole undoing: its inode goes, and
 * with it every page so far.
 */

#include "mem/commit.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <string.h>
#include <sys/mman.h>

#include "base/align.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "mem/slices.h"
#include "proto/status.h"

/* Never written, so all of it is the kernel's one page of zeros. */
static char zeros[COMMIT_INLINE_MAX];

/* Allocates and clears in one pass what fallocate would leave to be cleared at the first touch: that is done by whoever
 * maps it then, page by page, and costs him more than it costs here. */
static int write_zeros(struct commit *commit, int t, const struct slice *slice)
{
    size_t done = 0;
    int r = 0;

    while (done < slice->length && !r) {
        size_t some = slice->length - done < sizeof(zeros) ? slice->length - done : sizeof(zeros);
        ssize_t n = sys->pwrite(t, zeros, some, (off_t)(slice->offset + done));

        if (n > 0)
            done += (size_t)n;
        else if (!n || errno != EINTR)
            return commit_refuse_errno(commit, "a buffer");
        r = commit_check_cancel(commit);
    }
    return r;
}

static int commit_allocate(struct commit *commit, int t, const struct slice *slice)
{
    while (sys->fallocate(t, 0, (off_t)slice->offset, (off_t)slice->length) < 0) {
        int r;

        if (errno != EINTR)
            return commit_refuse_errno(commit, "a buffer");
        r = commit_check_cancel(commit);
        if (r)
            return r;
    }
    return 0;
}

/* So much more is done: a time to pause. */
static void commit_advance(struct commit *commit, uint64_t bytes)
{
    commit->done += bytes;
    commit->paused = commit->done < commit->plan.brief.bytes && commit_should_pause(commit);
}

static int commit_base(struct commit *commit, int t)
{
    bool one_node = commit->plan.brief.strict;
    bool clear = commit->clear || commit->plan.brief.bytes <= COMMIT_INLINE_MAX;
    int r = 0;

    while (commit->done < commit->plan.brief.bytes && !r && !commit->paused) {
        struct slice slice = slice_at(commit, commit->done, one_node);

        r = commit_check_cancel(commit);
        if (!r)
            r = slice_check_available(commit, &slice);
        if (!r)
            r = clear ? write_zeros(commit, t, &slice) : commit_allocate(commit, t, &slice);
        if (!r)
            commit_advance(commit, slice.length);
    }
    return r;
}

/* Those that are not set aside the kernel makes of memory that somebody else may need. */
static int check_hugetlb_available(struct commit *commit, const struct slice *slice)
{
    int node = commit->topology->one_node ? -1 : (int)slice->node;
    uint64_t free;

    if (sys->huge_pages(node, commit->page_size, SYS_HUGE_FREE, &free) == 0 &&
        free >= slice->length / commit->page_size)
        return 0;
    return slice_ask_available(commit, slice);
}

static int allocate_hugetlb(struct commit *commit, int t)
{
    unsigned long mask[SYS_NODE_MASK_WORDS];
    int r = 0;

    while (commit->done < commit->plan.brief.bytes && !r && !commit->paused) {
        struct slice slice = slice_at(commit, commit->done, true);

        r = commit_check_cancel(commit);
        if (!r && !commit->topology->one_node) {
            node_mask(mask, slice.node);
            if (sys->set_mempolicy(commit_policy_mode(commit), mask) < 0)
                r = commit_refuse_node(commit, slice.node);
        }
        if (!r)
            r = check_hugetlb_available(commit, &slice);
        if (!r)
            r = commit_allocate(commit, t, &slice);
        if (!r)
            commit_advance(commit, slice.length);
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
        return commit_refuse_errno(commit, "to tell the placement policy");
    r = allocate_hugetlb(commit, t);
    for (size_t i = 0; i < SYS_NODE_MASK_WORDS; i++)
        any = any || before[i];
    if (sys->set_mempolicy(mode, any ? before : NULL) < 0)
        (void)sys->set_mempolicy(MPOL_DEFAULT, NULL);
    return r;
}

static int commit_verify(struct commit *commit, int t)
{
    int r = 0;

    if (!commit->verifying) {
        commit->verifying = true;
        commit->done = 0;
    }
    while (commit->done < commit->plan.brief.bytes && !r && !commit->paused) {
        struct slice slice = slice_at(commit, commit->done, true);

        r = commit_check_cancel(commit);
        if (!r)
            r = slice_verify(commit, t, &slice);
        if (!r)
            commit_advance(commit, slice.length);
    }
    return r;
}

static int make_file(struct commit *commit)
{
    _cleanup_close_ int original = -1;
    _cleanup_close_ int t = -1;
    off_t size;

    if (!checked_off(commit->plan.brief.bytes, &size)) {
        errno = EFBIG;
        return commit_refuse_errno(commit, "a file of this size");
    }
    original = sys_memfd_new(commit->label, commit->pages == PAGES_HUGETLB ? commit->page_size : 0);
    if (original < 0)
        return commit_refuse_errno(commit, "a memfd");
    if (sys->fchmod(original, 0600) < 0)
        return commit_refuse_errno(commit, "the mode of a buffer");
    t = sys->reopen(original, O_RDWR);
    if (t < 0 || sys_fd_check(t) < 0)
        return commit_refuse_errno(commit, "another description of a buffer");
    if (sys->ftruncate(t, size) < 0)
        return commit_refuse_errno(commit, "the size of a buffer");
    commit->file = steal_fd(&t);
    commit->done = 0;
    commit->verifying = false;
    commit->huge_bytes = 0;
    return commit->pages == PAGES_HUGETLB ? 0 : slices_place(commit, commit->file);
}

static int fill_file(struct commit *commit, int t)
{
    int r = 0;

    switch (commit->pages) {
    case PAGES_ANY:
    case PAGES_BASE:
        r = commit_base(commit, t);
        break;
    case PAGES_THP:
        r = commit_thp(commit, t, &commit->huge_bytes);
        break;
    case PAGES_HUGETLB:
        r = commit_hugetlb(commit, t);
        break;
    }
    return r;
}

static bool is_verified(const struct commit *commit)
{
    return commit->plan.brief.strict && !commit->lazy;
}

/* Goes on where it paused. */
static int commit_pages(struct commit *commit, int t)
{
    int r = 0;

    if (!commit->lazy && !commit->verifying)
        r = fill_file(commit, t);
    if (!r && !commit->paused && is_verified(commit) && !commit->topology->one_node)
        r = commit_verify(commit, t);
    return r;
}

/* Where shmem_enabled is "always", older kernels give the end of any file a huge page: back with what is too much. */
static int commit_trim(struct commit *commit, int t)
{
    uint64_t bytes = commit->plan.brief.bytes;
    uint64_t thp = commit->topology->thp_size;
    struct stat st;

    if (commit->pages == PAGES_HUGETLB || !thp)
        return 0;
    if (sys->fstat(t, &st) < 0)
        return commit_refuse_errno(commit, "to measure a buffer");
    if ((uint64_t)st.st_blocks * 512 > bytes && sys->fallocate(t, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                                               (off_t)bytes, (off_t)(align_up(bytes, thp) - bytes)) < 0)
        return commit_refuse_errno(commit, "to trim a buffer");
    return 0;
}

static int commit_make(struct commit *commit)
{
    int seals = F_SEAL_SHRINK | F_SEAL_GROW | (commit->publishable ? 0 : F_SEAL_SEAL);
    int r = commit->file < 0 ? make_file(commit) : 0;

    if (!r)
        r = commit_pages(commit, commit->file);
    if (r || commit->paused)
        return r;
    r = commit_trim(commit, commit->file);
    if (r)
        return r;
    if (sys->add_seals(commit->file, seals) < 0)
        return commit_refuse_errno(commit, "to seal a buffer");
    if (handle_identity(commit->file, &commit->identity) < 0)
        return commit_refuse_errno(commit, "to identify a buffer");
    commit->verified = is_verified(commit);
    commit->fd = steal_fd(&commit->file);
    return 0;
}

void commit_init(struct commit *commit)
{
    memset(commit, 0, sizeof(*commit));
    atomic_init(&commit->cancel, false);
    commit->fd = -1;
    commit->file = -1;
}

void commit_deinit(struct commit *commit)
{
    commit->fd = fd_close(commit->fd);
    commit->file = fd_close(commit->file);
}

bool commit_is_small(const struct commit *commit)
{
    if (commit->lazy)
        return commit->topology->one_node || !commit->plan.brief.part_size;
    return commit->pages == PAGES_BASE && commit->plan.brief.bytes <= COMMIT_INLINE_MAX;
}

bool commit_maps(const struct commit *commit)
{
    return commit->pages == PAGES_THP || !commit->topology->one_node;
}

int commit_run(struct commit *commit)
{
    commit->paused = false;
    commit->status = commit_make(commit);
    if (!commit->paused)
        commit->file = fd_close(commit->file);
    return commit->status;
}
