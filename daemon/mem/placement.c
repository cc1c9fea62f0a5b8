/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See placement.h. All arithmetic is in granules where parts are concerned, so that every part starts and
 * ends on a page of the buffer's kind and the parts sum up to the buffer by construction.
 */

#include "mem/placement.h"

#include <assert.h>
#include <string.h>

#include "base/align.h"
#include "proto/status.h"

static int plan_refuse_full(const struct plan_request *request, struct problem *problem)
{
    return refuse(problem, STATUS_POOL_FULL,
                  "no room for %llu bytes on the nodes asked for; free some, ask for less, or wait",
                  (unsigned long long)request->bytes);
}

static void plan_add(struct plan *plan, uint32_t node, uint64_t bytes)
{
    plan->nodes.node[plan->brief.n_nodes] = (uint8_t)node;
    plan->nodes.bytes[plan->brief.n_nodes] = bytes;
    plan->brief.n_nodes++;
}

/* Whole granules only: a node's last odd bytes are of no use. */
static uint64_t available_on(const struct plan_request *request, const uint64_t *available, uint32_t i)
{
    return align_down(available[request->nodes[i]], request->granule);
}

static int plan_in_order(struct plan *plan, const struct plan_request *request, const uint64_t *available,
                         struct problem *problem)
{
    uint64_t left = request->bytes;

    for (uint32_t i = 0; i < request->n_nodes; i++)
        if (available_on(request, available, i) >= request->bytes) {
            plan_add(plan, request->nodes[i], request->bytes);
            return 0;
        }
    for (uint32_t i = 0; i < request->n_nodes && left; i++) {
        uint64_t part = available_on(request, available, i);

        if (!part)
            continue;
        if (part > left)
            part = left;
        plan_add(plan, request->nodes[i], part);
        left -= part;
    }
    return left ? plan_refuse_full(request, problem) : 0;
}

/* Do the shares that the request fixes fit? */
static int plan_check_shares(const struct plan *plan, const struct plan_request *request, const uint64_t *available,
                             struct problem *problem)
{
    for (uint32_t i = 0; i < plan->brief.n_nodes; i++) {
        uint32_t node = plan->nodes.node[i];

        if (plan->nodes.bytes[i] > align_down(available[node], request->granule))
            return refuse(problem, STATUS_POOL_FULL,
                          "node %u has no room for its share of %llu bytes; free some, ask for less, "
                          "or leave the node out",
                          node, (unsigned long long)plan->nodes.bytes[i]);
    }
    return 0;
}

static int plan_interleave(struct plan *plan, const struct plan_request *request, const uint64_t *available,
                           struct problem *problem)
{
    uint64_t smallest =
        align_up(request->bytes / PLAN_PARTS_MAX + (request->bytes % PLAN_PARTS_MAX != 0), request->granule);
    uint64_t part = request->part_size;
    uint64_t parts;
    uint64_t last;

    if (!part)
        part = smallest;
    if (part % request->granule)
        return refuse(problem, STATUS_INVALID_ARGUMENT,
                      "a part size of %llu bytes; it must be a multiple of the granule, %llu", (unsigned long long)part,
                      (unsigned long long)request->granule);
    if (part < smallest)
        return refuse(problem, STATUS_INVALID_ARGUMENT,
                      "parts of %llu bytes would be more than %d parts; make them at least %llu bytes, or 0 "
                      "to have it chosen",
                      (unsigned long long)part, PLAN_PARTS_MAX, (unsigned long long)smallest);
    parts = request->bytes / part + (request->bytes % part != 0);
    last = request->bytes - (parts - 1) * part;
    for (uint32_t i = 0; i < request->n_nodes && i < parts; i++) {
        uint64_t mine = parts / request->n_nodes + (i < parts % request->n_nodes);
        bool has_last = (parts - 1) % request->n_nodes == i;

        plan_add(plan, request->nodes[i], has_last ? (mine - 1) * part + last : mine * part);
    }
    plan->brief.part_size = part;
    return plan_check_shares(plan, request, available, problem);
}

static int plan_split(struct plan *plan, const struct plan_request *request, const uint64_t *available,
                      struct problem *problem)
{
    uint64_t granules = request->bytes / request->granule;
    uint64_t sum = 0;
    uint64_t until = 0;
    uint64_t start = 0;

    for (uint32_t i = 0; i < request->n_nodes; i++)
        sum += request->weights[i];
    for (uint32_t i = 0; i < request->n_nodes; i++) {
        uint64_t end;

        until += sum ? request->weights[i] : 1;
        end = (uint64_t)((unsigned __int128)granules * until / (sum ? sum : request->n_nodes));
        if (end > start)
            plan_add(plan, request->nodes[i], (end - start) * request->granule);
        start = end;
    }
    return plan_check_shares(plan, request, available, problem);
}

int plan_make(struct plan *ret, const struct plan_request *request, const uint64_t available[static TOPOLOGY_NODES_MAX],
              struct problem *problem)
{
    struct plan plan;
    int r = STATUS_INVALID_ARGUMENT;

    assert(request->bytes && is_power_of_two(request->granule) && !(request->bytes % request->granule));
    assert(request->n_nodes && request->n_nodes <= TOPOLOGY_NODES_MAX);
    memset(&plan, 0, sizeof(plan));
    plan.brief.bytes = request->bytes;
    plan.brief.placement = (uint8_t)request->placement;
    plan.brief.strict = request->placement == PLACEMENT_BIND;
    switch (request->placement) {
    case PLACEMENT_BIND:
    case PLACEMENT_PREFERRED:
    case PLACEMENT_LOCAL:
        r = plan_in_order(&plan, request, available, problem);
        break;
    case PLACEMENT_INTERLEAVE:
        r = plan_interleave(&plan, request, available, problem);
        break;
    case PLACEMENT_SPLIT:
        r = plan_split(&plan, request, available, problem);
        break;
    case PLACEMENT_POOL:
        assert(false);
        break;
    }
    if (r)
        return r;
    plan.brief.node = plan.nodes.node[0];
    if (plan.brief.n_nodes == 1)
        plan.brief.part_size = 0;
    *ret = plan;
    return 0;
}

uint32_t plan_node_of(const struct plan *plan, uint64_t offset, uint64_t *ret_run)
{
    const struct plan_brief *brief = &plan->brief;
    uint64_t run = brief->bytes - offset;
    uint32_t i = 0;

    assert(offset < brief->bytes);
    if (brief->part_size) {
        uint64_t to_end = brief->part_size - offset % brief->part_size;

        i = (uint32_t)(offset / brief->part_size % brief->n_nodes);
        if (to_end < run)
            run = to_end;
    } else {
        uint64_t end = plan->nodes.bytes[0];

        while (offset >= end)
            end += plan->nodes.bytes[++i];
        run = end - offset;
    }
    if (ret_run)
        *ret_run = run;
    return plan->nodes.node[i];
}

void plan_unpack(struct plan *ret, const struct plan_brief *brief, const struct plan_nodes *nodes)
{
    memset(ret, 0, sizeof(*ret));
    ret->brief = *brief;
    if (brief->n_nodes > 1) {
        ret->nodes = *nodes;
    } else {
        ret->nodes.node[0] = (uint8_t)brief->node;
        ret->nodes.bytes[0] = brief->bytes;
    }
}
