/* SPDX-License-Identifier: Apache-2.0 */
/* See memspace.h. */
#include "umf/memspace.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* ---- by what they are good at ------------------------------------------------------------------------------------ */

/* Of nodes with equal size, the first counts as the largest. */
static bool is_largest(const struct nodes *nodes, const struct node *node)
{
    for (const struct node *other = nodes->nodes; other < nodes->nodes + nodes->n; other++)
        if (other->bytes > node->bytes || (other->bytes == node->bytes && other < node))
            return false;
    return true;
}

/* A larger number is faster; 0: unknown. */
static uint64_t node_speed(const struct node *node, enum memspace_kind kind)
{
    if (kind == MEMSPACE_HIGHEST_BANDWIDTH)
        return node->bandwidth;
    return node->latency ? UINT64_MAX - node->latency : 0;
}

static bool is_fastest_for(const struct nodes *nodes, const struct node *node, enum memspace_kind kind,
                           unsigned initiator)
{
    if (!node_set_has(&node->nearest, initiator))
        return false;
    for (const struct node *other = nodes->nodes; other < nodes->nodes + nodes->n; other++)
        if (node_set_has(&other->nearest, initiator) && node_speed(other, kind) > node_speed(node, kind))
            return false;
    return true;
}

static bool node_belongs(const struct nodes *nodes, const struct node *node, enum memspace_kind kind)
{
    if (kind == MEMSPACE_HOST_ALL)
        return true;
    if (kind == MEMSPACE_HIGHEST_CAPACITY)
        return is_largest(nodes, node);
    for (unsigned initiator = 0; node_speed(node, kind) && initiator < NODE_NUMBERS; initiator++)
        if (is_fastest_for(nodes, node, kind, initiator))
            return true;
    return false;
}

static struct umf_memspace_t *memspace_allocate(size_t n)
{
    return calloc(1, sizeof(struct umf_memspace_t) + n * sizeof(unsigned));
}

struct umf_memspace_t *memspace_new(enum memspace_kind kind, const struct nodes *nodes)
{
    struct umf_memspace_t *memspace = memspace_allocate(nodes->n);

    if (!memspace)
        return NULL;
    memspace->predefined = true;
    memspace->everywhere = kind == MEMSPACE_HOST_ALL;
    for (const struct node *node = nodes->nodes; node < nodes->nodes + nodes->n; node++)
        if (node_belongs(nodes, node, kind))
            memspace->nodes[memspace->n++] = node->number;
    if (!memspace->n) {
        free(memspace);
        return NULL;
    }
    return memspace;
}

/* ---- the predefined ones ----------------------------------------------------------------------------------------- */

static struct umf_memspace_t *predefined[MEMSPACE_KINDS];

static void make_predefined(void)
{
    _cleanup_free_ struct nodes *nodes = nodes_load("");

    for (unsigned kind = 0; nodes && kind < MEMSPACE_KINDS; kind++)
        predefined[kind] = memspace_new(kind, nodes);
}

static umf_const_memspace_handle_t memspace_get_predefined(enum memspace_kind kind)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, make_predefined);
    return predefined[kind];
}

umf_const_memspace_handle_t umfMemspaceHostAllGet(void)
{
    return memspace_get_predefined(MEMSPACE_HOST_ALL);
}

umf_const_memspace_handle_t umfMemspaceHighestCapacityGet(void)
{
    return memspace_get_predefined(MEMSPACE_HIGHEST_CAPACITY);
}

umf_const_memspace_handle_t umfMemspaceHighestBandwidthGet(void)
{
    return memspace_get_predefined(MEMSPACE_HIGHEST_BANDWIDTH);
}

umf_const_memspace_handle_t umfMemspaceLowestLatencyGet(void)
{
    return memspace_get_predefined(MEMSPACE_LOWEST_LATENCY);
}

/* ---- by number --------------------------------------------------------------------------------------------------- */

umf_result_t umfMemspaceCreateFromNumaArray(unsigned *nodeIds, size_t numIds, umf_memspace_handle_t *hMemspace)
{
    umf_memspace_handle_t memspace;

    if (!nodeIds || !numIds || numIds > UINT_MAX || !hMemspace)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    memspace = memspace_allocate(numIds);
    if (!memspace)
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    memspace->n = (unsigned)numIds;
    memcpy(memspace->nodes, nodeIds, numIds * sizeof(*nodeIds));
    *hMemspace = memspace;
    return UMF_RESULT_SUCCESS;
}

void umfMemspaceDestroy(umf_memspace_handle_t hMemspace)
{
    if (hMemspace && !hMemspace->predefined)
        free(hMemspace);
}
