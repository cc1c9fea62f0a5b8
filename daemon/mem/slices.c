/* SPDX-License-Identifier: Apache-2.0 */
/* See slices.h. */

#include "mem/slices.h"

#include <assert.h>
#include <errno.h>
#include <linux/mempolicy.h>
#include <string.h>
#include <sys/mman.h>

#include "base/checked.h"
#include "proto/status.h"

/* How much available memory a commit leaves to the rest of the machine. */
#define HEADROOM (UINT64_C(64) << 20)
/* Asking how much memory there is costs as much as a small commit, so these ask only once in so many bytes. */
#define UNASKED_MAX (UINT64_C(16) << 20)
/* Pages asked about at once. */
#define PROBE_PAGES 512
/* How often to look again when a page was swapped out meanwhile. */
#define VERIFY_TRIES 3

static _Atomic uint64_t unasked;

int commit_refuse_errno(struct commit *commit, const char *what)
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
        return refuse(&commit->problem, STATUS_NOT_SUPPORTED, "the kernel refused %s: %s", what, strerror(error));
    }
}

int commit_check_cancel(struct commit *commit)
{
    if (!atomic_load(&commit->cancel))
        return 0;
    return refuse(&commit->problem, STATUS_TIMED_OUT, "the allocation was cancelled before it was complete");
}

bool commit_should_pause(const struct commit *commit)
{
    return commit->pause && atomic_load_explicit(commit->pause, memory_order_relaxed);
}

struct slice slice_at(const struct commit *commit, uint64_t offset, bool one_node)
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

int slice_ask_available(struct commit *commit, const struct slice *slice)
{
    bool strict = commit->plan.brief.strict && !commit->topology->one_node;
    uint64_t available = sys->available(strict ? (int)slice->node : -1);

    if (available >= HEADROOM && available - HEADROOM >= slice->length)
        return 0;
    return refuse(&commit->problem, STATUS_NO_MEMORY,
                  "%s %u, or a control group that memoryd is in, has only %llu bytes left that nobody uses; free some, "
                  "or ask for less",
                  strict ? "node" : "the machine with node", slice->node, (unsigned long long)available);
}

int slice_check_available(struct commit *commit, const struct slice *slice)
{
    if (slice->length <= COMMIT_INLINE_MAX) {
        if (atomic_fetch_add(&unasked, slice->length) < UNASKED_MAX)
            return 0;
        atomic_store(&unasked, 0);
    }
    return slice_ask_available(commit, slice);
}

void node_mask(unsigned long mask[SYS_NODE_MASK_WORDS], uint32_t node)
{
    const unsigned bits = 8 * sizeof(mask[0]);

    assert(node < SYS_NODE_MASK_BITS);
    memset(mask, 0, SYS_NODE_MASK_WORDS * sizeof(mask[0]));
    mask[node / bits] = 1UL << node % bits;
}

int commit_policy_mode(const struct commit *commit)
{
    return commit->plan.brief.strict ? MPOL_BIND : MPOL_PREFERRED;
}

int commit_refuse_node(struct commit *commit, uint32_t node)
{
    if (errno == EINVAL)
        return refuse(&commit->problem, STATUS_MISPLACED,
                      "the kernel does not let memoryd use node %u; see the memory nodes of its cpuset", node);
    return commit_refuse_errno(commit, "a placement policy");
}

int slices_place(struct commit *commit, int fd)
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
            return commit_refuse_errno(commit, "a placement policy");
        }
        /* parts are mapped one after the other, so that there are never many mappings */
        map = sys->mmap(NULL, length, PROT_READ, MAP_SHARED, fd, (off_t)offset);
        if (map == MAP_FAILED)
            return commit_refuse_errno(commit, "a mapping");
        node_mask(mask, slice.node);
        if (sys->mbind(map, length, commit_policy_mode(commit), mask, 0) < 0)
            r = commit_refuse_node(commit, slice.node);
        (void)sys->munmap(map, length);
        offset += run;
        if (!r)
            r = commit_check_cancel(commit);
    }
    return r;
}

int slice_probe(const struct commit *commit, char *map, const struct slice *slice)
{
    size_t step = (size_t)(commit->pages == PAGES_HUGETLB ? commit->page_size : commit->topology->base_page);
    void *pages[PROBE_PAGES];
    int where[PROBE_PAGES];
    size_t at = 0;

    while (at < slice->length) {
        unsigned long n = 0;

        for (; n < PROBE_PAGES && at < slice->length; n++, at += step) {
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

int slice_misplaced(struct commit *commit, const struct slice *slice, int seen)
{
    return refuse(&commit->problem, STATUS_MISPLACED,
                  seen < 0 ? "the kernel does not tell whether all pages are on node %u"
                           : "the kernel did not put all pages on node %u; free memory there, or ask for a "
                             "preference instead",
                  slice->node);
}

int slice_verify(struct commit *commit, int fd, const struct slice *slice)
{
    int seen = -1;

    for (int try = 0; try < VERIFY_TRIES && seen < 0; try++) {
        /* the kernel finds only pages that the mapping has touched, hence MAP_POPULATE */
        char *map = sys->mmap(NULL, slice->length, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, (off_t)slice->offset);

        if (map == MAP_FAILED)
            return commit_refuse_errno(commit, "a mapping");
        seen = slice_probe(commit, map, slice);
        (void)sys->munmap(map, slice->length);
    }
    return seen ? slice_misplaced(commit, slice, seen) : 0;
}
