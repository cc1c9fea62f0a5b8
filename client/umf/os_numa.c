/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OS provider's nodes, by system calls. The numbers of the modes are defined here, since the kernel's header for
 * them is younger than some kernels that we support.
 *
 * SPLIT cuts an allocation by the weights. A page in which a cut falls may come from the nodes of both sides.
 */
#include <errno.h>
#include <sys/mman.h>

#include "base/align.h"
#include "umf/os.h"

#define NODES     1024 /* the most that any kernel has */
#define WORD_BITS (8 * sizeof(unsigned long))

/* The kernel expects one more than the number of bits. */
#define NODE_BITS (NODES + 1)

enum {
    POLICY_DEFAULT = 0,
    POLICY_PREFERRED = 1,
    POLICY_BIND = 2,
    POLICY_INTERLEAVE = 3,
    POLICY_LOCAL = 4,
    POLICY_PREFERRED_MANY = 5,
    POLICY_WEIGHTED_INTERLEAVE = 6,
    POLICY_FLAGS = 0xe000, /* the kernel may add these to a mode */
    MEMS_ALLOWED = 4
};

struct mask {
    unsigned long words[NODES / WORD_BITS + 1];
};

/* Holds the product of a sum of weights and a number of pages. */
__extension__ typedef unsigned __int128 wide;

static bool mask_add(struct mask *mask, unsigned node)
{
    if (node >= NODES)
        return false;
    mask->words[node / WORD_BITS] |= 1UL << node % WORD_BITS;
    return true;
}

/* Rounds a part up to whole pages. */
static uint64_t whole_part(uint64_t part)
{
    return part > UINT64_MAX - page_size() ? page_align_down(UINT64_MAX) : page_align_up(part);
}

int os_numa_discover(void)
{
    struct mask allowed = {{0}};

    return os_calls->get_mempolicy(NULL, allowed.words, NODE_BITS, NULL, MEMS_ALLOWED) < 0 ? -errno : 0;
}

/* ---- the process's memory ---------------------------------------------------------------------------------------- */

static int bind_mask(void *ptr, uint64_t length, int policy, const struct mask *mask)
{
    return os_calls->mbind(ptr, (unsigned long)length, policy, mask ? mask->words : NULL, mask ? NODE_BITS : 0, 0) < 0
               ? -errno
               : 0;
}

static int bind_node(void *ptr, uint64_t length, unsigned node)
{
    struct mask mask = {{0}};

    return mask_add(&mask, node) ? bind_mask(ptr, length, POLICY_BIND, &mask) : -EINVAL;
}

static int bind_all(const struct os *os, void *ptr, uint64_t length, int policy)
{
    struct mask mask = {{0}};

    for (unsigned i = 0; i < os->n_nodes; i++)
        if (!mask_add(&mask, os->nodes[i]))
            return -EINVAL;
    return bind_mask(ptr, length, policy, &mask);
}

static int bind_preferred(const struct os *os, void *ptr, uint64_t length)
{
    struct mask first = {{0}};
    int r;

    if (!os->n_nodes)
        return bind_mask(ptr, length, POLICY_LOCAL, NULL);
    if (os->n_nodes > 1) {
        r = bind_all(os, ptr, length, POLICY_PREFERRED_MANY);
        if (r != -EINVAL)
            return r;
        /* older kernels know only one preferred node */
    }
    return mask_add(&first, os->nodes[0]) ? bind_mask(ptr, length, POLICY_PREFERRED, &first) : -EINVAL;
}

/*
 * Turns huge pages off, each of which would be on one node. A kernel without huge pages refuses, which does not matter.
 */
static int bind_interleaved_pages(const struct os *os, void *ptr, uint64_t length)
{
    if (os->n_nodes > 1)
        (void)os_calls->madvise(ptr, (size_t)length, MADV_NOHUGEPAGE);
    return bind_all(os, ptr, length, POLICY_INTERLEAVE);
}

/* Binds each part of part_size to the next node, and goes on where the last allocation ended. */
static int bind_interleaved(const struct os *os, char *ptr, uint64_t length, uint64_t before)
{
    uint64_t part, next;
    int r = 0;

    if (!os->part_size)
        return bind_interleaved_pages(os, ptr, length);
    part = whole_part(os->part_size);
    next = before / os->part_size;
    for (uint64_t at = 0; !r && at < length; at += part < length - at ? part : length - at)
        r = bind_node(ptr + at, part < length - at ? part : length - at, os->nodes[next++ % os->n_nodes]);
    return r;
}

static int bind_split(const struct os *os, char *ptr, uint64_t length)
{
    const uint64_t page = page_size(), n_pages = length / page;
    uint64_t sum = 0, end = 0; /* of weights: all of them, and up to the end of partition i */
    unsigned i = 0;
    int r = 0;

    for (unsigned k = 0; k < os->n_partitions; k++)
        sum += os->partitions[k].weight;
    end = os->partitions[0].weight;
    for (uint64_t at = 0, n; !r && at < n_pages; at += n) {
        struct mask mask = {{0}};
        uint64_t last;

        /* page `at` covers the weights from at * sum / n_pages to (at + 1) * sum / n_pages */
        while ((wide)end * n_pages <= (wide)at * sum)
            end += os->partitions[++i].weight;
        n = (uint64_t)((wide)end * n_pages / sum) - at; /* pages that are wholly in partition i */
        last = end;
        if (!mask_add(&mask, os->partitions[i].target))
            return -EINVAL;
        for (unsigned k = i + 1; !n && k < os->n_partitions && (wide)last * n_pages < (wide)(at + 1) * sum; k++) {
            if (!mask_add(&mask, os->partitions[k].target))
                return -EINVAL;
            last += os->partitions[k].weight;
        }
        n = n ? n : 1;
        r = bind_mask(ptr + at * page, n * page, POLICY_BIND, &mask);
    }
    return r;
}

int os_numa_bind(const struct os *os, void *ptr, uint64_t length, uint64_t before)
{
    switch (os->mode) {
    case UMF_NUMA_MODE_BIND:
        return bind_all(os, ptr, length, POLICY_BIND);
    case UMF_NUMA_MODE_INTERLEAVE:
        return bind_interleaved(os, ptr, length, before);
    case UMF_NUMA_MODE_PREFERRED:
        return bind_preferred(os, ptr, length);
    case UMF_NUMA_MODE_SPLIT:
        return bind_split(os, ptr, length);
    case UMF_NUMA_MODE_LOCAL:
        return bind_mask(ptr, length, POLICY_LOCAL, NULL);
    case UMF_NUMA_MODE_DEFAULT:
        break;
    }
    /* the thread's policy applies when pages are touched */
    return 0;
}

/* ---- the broker's memory ----------------------------------------------------------------------------------------- */

/* The broker accepts each node once, so the weights of one that is listed twice are added. */
static int add_node(struct os_request *request, unsigned node, uint64_t weight)
{
    size_t i = 0;

    while (i < request->options.n_nodes && request->nodes[i] != node)
        i++;
    if (i == OS_REQUEST_NODES)
        return -EINVAL;
    if (i == request->options.n_nodes) {
        request->nodes[i] = node;
        request->weights[i] = 0;
        request->options.n_nodes++;
    }
    if (weight > UINT32_MAX - request->weights[i])
        weight = UINT32_MAX - request->weights[i];
    request->weights[i] += (uint32_t)weight;
    return 0;
}

static int add_nodes(const struct os *os, uint64_t first, struct os_request *request)
{
    int r = 0;

    for (unsigned i = 0; !r && i < os->n_nodes; i++)
        r = add_node(request, os->nodes[(first + i) % os->n_nodes], 0);
    return r;
}

static unsigned placement_of(int policy)
{
    switch (policy & ~POLICY_FLAGS) {
    case POLICY_BIND:
        return MEMCLIENT_PLACEMENT_BIND;
    case POLICY_INTERLEAVE:
    case POLICY_WEIGHTED_INTERLEAVE:
        return MEMCLIENT_PLACEMENT_INTERLEAVE;
    case POLICY_PREFERRED:
    case POLICY_PREFERRED_MANY:
        return MEMCLIENT_PLACEMENT_PREFERRED;
    default:
        return MEMCLIENT_PLACEMENT_LOCAL;
    }
}

/* Asks for what the thread's own policy would give. */
static int request_of_thread(struct os_request *request)
{
    struct mask mask = {{0}};
    int policy = POLICY_DEFAULT, r = 0;

    if (os_calls->get_mempolicy(&policy, mask.words, NODE_BITS, NULL, 0) < 0)
        policy = POLICY_DEFAULT;
    request->options.placement = placement_of(policy);
    if (request->options.placement == MEMCLIENT_PLACEMENT_LOCAL)
        return 0;
    for (unsigned node = 0; !r && node < NODES; node++)
        if (mask.words[node / WORD_BITS] >> node % WORD_BITS & 1)
            r = add_node(request, node, 0);
    if (!request->options.n_nodes)
        request->options.placement = MEMCLIENT_PLACEMENT_LOCAL;
    return r;
}

int os_numa_request(const struct os *os, uint64_t before, struct os_request *request)
{
    const uint64_t part = os->part_size ? os->part_size : page_size();
    int r = 0;

    request->options = os->shared.options;
    request->options.nodes = request->nodes;
    switch (os->mode) {
    case UMF_NUMA_MODE_BIND:
        request->options.placement = MEMCLIENT_PLACEMENT_BIND;
        return add_nodes(os, 0, request);
    case UMF_NUMA_MODE_INTERLEAVE:
        request->options.placement = MEMCLIENT_PLACEMENT_INTERLEAVE;
        request->options.part_size = whole_part(part);
        return add_nodes(os, before / part, request);
    case UMF_NUMA_MODE_PREFERRED:
        request->options.placement = os->n_nodes ? MEMCLIENT_PLACEMENT_PREFERRED : MEMCLIENT_PLACEMENT_LOCAL;
        return add_nodes(os, 0, request);
    case UMF_NUMA_MODE_SPLIT:
        request->options.placement = MEMCLIENT_PLACEMENT_SPLIT;
        request->options.weights = request->weights;
        for (unsigned i = 0; !r && i < os->n_partitions; i++)
            r = add_node(request, os->partitions[i].target, os->partitions[i].weight);
        return r;
    case UMF_NUMA_MODE_LOCAL:
        request->options.placement = MEMCLIENT_PLACEMENT_LOCAL;
        return 0;
    case UMF_NUMA_MODE_DEFAULT:
        break;
    }
    return request_of_thread(request);
}

/* Which of a request's nodes the broker has memory on, in any pool. */
struct served {
    const struct os_request *request;
    bool has[OS_REQUEST_NODES];
};

static int note_served(const struct memclient_pool_info *pool, void *data)
{
    struct served *served = data;

    for (size_t i = 0; i < served->request->options.n_nodes; i++)
        for (size_t k = 0; k < pool->n_nodes; k++)
            served->has[i] |= pool->nodes[k] == served->request->nodes[i];
    return 0;
}

bool os_numa_request_fewer(const struct os *os, struct os_request *request)
{
    struct memclient_alloc_options *options = &request->options;
    struct served served = {.request = request};
    size_t n = 0;

    if (os->mode != UMF_NUMA_MODE_DEFAULT || options->placement == MEMCLIENT_PLACEMENT_LOCAL ||
        memclient_list_pools(os->shared.ctx, note_served, &served) < 0)
        return false;
    for (size_t i = 0; i < options->n_nodes; i++)
        if (served.has[i])
            request->nodes[n++] = request->nodes[i];
    if (!n || n == options->n_nodes) {
        options->placement = MEMCLIENT_PLACEMENT_LOCAL;
        n = 0;
    }
    options->n_nodes = n;
    return true;
}
