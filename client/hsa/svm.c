/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See svm.h. Ranges that something was said of are in a tree, whole pages each and none overlapping another; where none
 * is, nothing was said. A range is cut where a new one begins or ends inside of it, so that each is as a whole either
 * touched by a call or not. All under the lock of the records, address_map.h.
 */
#include "hsa/svm.h"

#include <stdlib.h>

#include <memclient/hsa/hsa/hsa_ext_amd.h>

#include "base/align.h"
#include "base/tree.h"
#include "hsa/job.h"
#include "hsa/address_map.h"
#include "hsa/runtime.h"
#include "hsa/topology.h"

#define GRANULARITY_USUAL 9
#define GRANULARITY_MAX   18

/* The attributes that are true or false, as a mask. */
#define FLAGS                                                                            \
    (1U << HSA_AMD_SVM_ATTRIB_READ_ONLY | 1U << HSA_AMD_SVM_ATTRIB_HIVE_LOCAL |          \
     1U << HSA_AMD_SVM_ATTRIB_READ_MOSTLY | 1U << HSA_AMD_SVM_ATTRIB_GPU_EXEC)

struct saying {
    uint64_t model;
    uint32_t flags; /* those that are true */
    uint64_t granularity;
    uint64_t preferred, prefetched; /* handles of agents */
    uint64_t no_access, in_place;   /* sets of agents */
};

static const struct saying nothing_said = {.granularity = GRANULARITY_USUAL};

struct stretch {
    RB_ENTRY(stretch) entry;
    uint64_t start;
    uint64_t end;
    struct saying saying;
};

static int compare_starts(const struct stretch *a, const struct stretch *b)
{
    return a->start < b->start ? -1 : a->start > b->start;
}

RB_HEAD(stretches, stretch);
TREE_GENERATE(stretches, stretch, entry, compare_starts)

static struct stretches stretches = RB_INITIALIZER(&stretches);

/* ---- the tree, with the lock ----------------------------------------------------------------------------- */

/* The first that ends behind the address. */
static struct stretch *first_behind(uint64_t address)
{
    struct stretch *found = NULL;

    for (struct stretch *s = RB_ROOT(&stretches); s;) {
        if (s->end > address) {
            found = s;
            s = RB_LEFT(s, entry);
        } else {
            s = RB_RIGHT(s, entry);
        }
    }
    return found;
}

static struct stretch *svm_insert(uint64_t start, uint64_t end, const struct saying *saying)
{
    struct stretch *new = malloc(sizeof(*new));

    if (!new)
        return NULL;
    *new = (struct stretch){.start = start, .end = end, .saying = *saying};
    RB_INSERT(stretches, &stretches, new);
    return new;
}

/* So that none has the address inside of it. */
static bool cut_at(uint64_t address)
{
    struct stretch *s = first_behind(address);
    uint64_t end;

    if (!s || s->start >= address)
        return true;
    end = s->end;
    s->end = address;
    if (svm_insert(address, end, &s->saying))
        return true;
    s->end = end;
    return false;
}

/* So that the range consists of whole stretches. If it fails, what was said is the same as before. */
static bool make_whole(uint64_t start, uint64_t end)
{
    if (!cut_at(start) || !cut_at(end))
        return false;
    while (start < end) {
        struct stretch *s = first_behind(start);
        uint64_t gap_end = s && s->start < end ? s->start : end;

        if (start < gap_end && !svm_insert(start, gap_end, &nothing_said))
            return false;
        start = s && s->start < end ? s->end : end;
    }
    return true;
}

void svm_forget(void)
{
    struct stretch *s;

    while ((s = RB_ROOT(&stretches))) {
        RB_REMOVE(stretches, &stretches, s);
        free(s);
    }
}

/* ---- what is said ---------------------------------------------------------------------------------------- */

struct wish {
    uint32_t given; /* mask of attributes below 0x200 */
    uint64_t accesses; /* set of agents */
    struct saying saying;
};

static bool is_agent_or_none(uint64_t handle)
{
    return !handle || topology_agent((hsa_agent_t){handle});
}

static hsa_status_t wish_access(struct wish *wish, uint64_t attribute, uint64_t value)
{
    const struct agent *agent = topology_agent((hsa_agent_t){value});
    uint64_t bit;

    if (!agent)
        return HSA_STATUS_ERROR_INVALID_AGENT;
    bit = UINT64_C(1) << agent->index;
    if (wish->accesses & bit)
        return HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS;
    wish->accesses |= bit;
    if (attribute == HSA_AMD_SVM_ATTRIB_AGENT_NO_ACCESS)
        wish->saying.no_access |= bit;
    if (attribute == HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE_IN_PLACE)
        wish->saying.in_place |= bit;
    return HSA_STATUS_SUCCESS;
}

static bool is_flag(uint64_t attribute)
{
    return attribute < 32 && FLAGS & 1U << attribute;
}

static hsa_status_t wish_for(struct wish *wish, uint64_t attribute, uint64_t value)
{
    if (attribute >= HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE && attribute <= HSA_AMD_SVM_ATTRIB_AGENT_NO_ACCESS)
        return wish_access(wish, attribute, value);
    if (is_flag(attribute)) {
        wish->saying.flags |= (uint32_t)(value != 0) << attribute;
    } else if (attribute == HSA_AMD_SVM_ATTRIB_GLOBAL_FLAG) {
        if (value != HSA_AMD_SVM_GLOBAL_FLAG_FINE_GRAINED && value != HSA_AMD_SVM_GLOBAL_FLAG_COARSE_GRAINED)
            return HSA_STATUS_ERROR_INVALID_ARGUMENT;
        wish->saying.model = value;
    } else if (attribute == HSA_AMD_SVM_ATTRIB_MIGRATION_GRANULARITY) {
        wish->saying.granularity = value < GRANULARITY_MAX ? value : GRANULARITY_MAX;
    } else if (attribute == HSA_AMD_SVM_ATTRIB_PREFERRED_LOCATION) {
        if (!is_agent_or_none(value))
            return HSA_STATUS_ERROR_INVALID_AGENT;
        wish->saying.preferred = value;
    } else {
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    }
    if (wish->given & 1U << attribute)
        return HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS;
    wish->given |= 1U << attribute;
    return HSA_STATUS_SUCCESS;
}

static bool is_given(const struct wish *wish, hsa_amd_svm_attribute_t attribute)
{
    return wish->given & 1U << attribute;
}

static void svm_apply(const struct wish *wish, struct saying *saying)
{
    saying->flags = (saying->flags & ~wish->given) | wish->saying.flags;
    if (is_given(wish, HSA_AMD_SVM_ATTRIB_GLOBAL_FLAG))
        saying->model = wish->saying.model;
    if (is_given(wish, HSA_AMD_SVM_ATTRIB_MIGRATION_GRANULARITY))
        saying->granularity = wish->saying.granularity;
    if (is_given(wish, HSA_AMD_SVM_ATTRIB_PREFERRED_LOCATION))
        saying->preferred = wish->saying.preferred;
    if (is_given(wish, HSA_AMD_SVM_ATTRIB_PREFETCH_LOCATION))
        saying->prefetched = wish->saying.prefetched;
    saying->no_access = (saying->no_access & ~wish->accesses) | wish->saying.no_access;
    saying->in_place = (saying->in_place & ~wish->accesses) | wish->saying.in_place;
}

/* All pages that it touches. False if it is no range. */
static bool pages_of(const void *ptr, size_t size, uint64_t *start, uint64_t *end)
{
    uint64_t last;

    if (!ptr || !size || __builtin_add_overflow((uintptr_t)ptr, size - 1, &last) || last >= UINT64_MAX - page_size())
        return false;
    *start = (uintptr_t)ptr / page_size() * page_size();
    *end = (last / page_size() + 1) * page_size();
    return true;
}

static hsa_status_t svm_say(uint64_t start, uint64_t end, const struct wish *wish)
{
    bool is_whole;

    address_map_lock();
    is_whole = make_whole(start, end);
    for (struct stretch *s = first_behind(start); is_whole && s && s->start < end;
         s = RB_NEXT(stretches, &stretches, s))
        svm_apply(wish, &s->saying);
    address_map_unlock();
    return is_whole ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_OUT_OF_RESOURCES;
}

hsa_status_t hsa_amd_svm_attributes_set(void *ptr, size_t size, hsa_amd_svm_attribute_pair_t *attribute_list,
                                        size_t attribute_count)
{
    _cleanup_(runtime_leavep) struct memclient *ctx = runtime_enter();
    struct wish wish = {0};
    uint64_t start, end;

    if (!ctx || !pages_of(ptr, size, &start, &end) || !attribute_list || !attribute_count)
        return runtime_refusal(ctx);
    for (size_t i = 0; i < attribute_count; i++) {
        hsa_status_t status = wish_for(&wish, attribute_list[i].attribute, attribute_list[i].value);

        if (status)
            return status;
    }
    return svm_say(start, end, &wish);
}

/* ---- what was said --------------------------------------------------------------------------------------- */

static void svm_join(struct saying *all, const struct saying *other)
{
    if (all->model != other->model)
        all->model = HSA_AMD_SVM_GLOBAL_FLAG_INDETERMINATE;
    all->flags &= other->flags;
    if (other->granularity < all->granularity)
        all->granularity = other->granularity;
    if (all->preferred != other->preferred)
        all->preferred = 0;
    if (all->prefetched != other->prefetched)
        all->prefetched = 0;
    all->no_access |= other->no_access;
    all->in_place &= other->in_place;
}

/* What holds for all of the range. With the lock. */
static struct saying said_of(uint64_t start, uint64_t end)
{
    struct stretch *s = first_behind(start);
    struct saying all = s && s->start <= start ? s->saying : nothing_said;

    for (; s && s->start < end; s = RB_NEXT(stretches, &stretches, s)) {
        if (s->start > start)
            svm_join(&all, &nothing_said);
        svm_join(&all, &s->saying);
        start = s->end;
    }
    if (start < end)
        svm_join(&all, &nothing_said);
    return all;
}

static hsa_status_t svm_tell_access(const struct saying *saying, hsa_amd_svm_attribute_pair_t *pair)
{
    const struct agent *agent = topology_agent((hsa_agent_t){pair->value});
    uint64_t bit;

    if (!agent)
        return HSA_STATUS_ERROR_INVALID_AGENT;
    bit = UINT64_C(1) << agent->index;
    pair->attribute = saying->no_access & bit  ? HSA_AMD_SVM_ATTRIB_AGENT_NO_ACCESS
                      : saying->in_place & bit ? HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE_IN_PLACE
                                               : HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE;
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t svm_tell(const struct saying *saying, hsa_amd_svm_attribute_pair_t *pair)
{
    switch (pair->attribute) {
    case HSA_AMD_SVM_ATTRIB_ACCESS_QUERY:
        return svm_tell_access(saying, pair);
    case HSA_AMD_SVM_ATTRIB_GLOBAL_FLAG:
        pair->value = saying->model;
        return HSA_STATUS_SUCCESS;
    case HSA_AMD_SVM_ATTRIB_MIGRATION_GRANULARITY:
        pair->value = saying->granularity;
        return HSA_STATUS_SUCCESS;
    case HSA_AMD_SVM_ATTRIB_PREFERRED_LOCATION:
        pair->value = saying->preferred;
        return HSA_STATUS_SUCCESS;
    case HSA_AMD_SVM_ATTRIB_PREFETCH_LOCATION:
        pair->value = saying->prefetched;
        return HSA_STATUS_SUCCESS;
    default:
        if (!is_flag(pair->attribute))
            return HSA_STATUS_ERROR_INVALID_ARGUMENT;
        pair->value = saying->flags >> pair->attribute & 1;
        return HSA_STATUS_SUCCESS;
    }
}

hsa_status_t hsa_amd_svm_attributes_get(void *ptr, size_t size, hsa_amd_svm_attribute_pair_t *attribute_list,
                                        size_t attribute_count)
{
    _cleanup_(runtime_leavep) struct memclient *ctx = runtime_enter();
    struct saying saying;
    uint64_t start, end;

    if (!ctx || !pages_of(ptr, size, &start, &end) || !attribute_list || !attribute_count)
        return runtime_refusal(ctx);
    /* first as a trial, since what fails changes nothing */
    for (size_t i = 0; i < attribute_count; i++) {
        hsa_amd_svm_attribute_pair_t pair = attribute_list[i];
        hsa_status_t status = svm_tell(&nothing_said, &pair);

        if (status)
            return status;
    }
    address_map_lock_read();
    saying = said_of(start, end);
    address_map_unlock();
    for (size_t i = 0; i < attribute_count; i++)
        (void)svm_tell(&saying, &attribute_list[i]);
    return HSA_STATUS_SUCCESS;
}

/* ---- prefetching ----------------------------------------------------------------------------------------- */

hsa_status_t hsa_amd_svm_prefetch_async(void *ptr, size_t size, hsa_agent_t agent, uint32_t num_dep_signals,
                                        const hsa_signal_t *dep_signals, hsa_signal_t completion_signal)
{
    _cleanup_(runtime_leavep) struct memclient *ctx = runtime_enter();
    struct wish wish = {.given = 1U << HSA_AMD_SVM_ATTRIB_PREFETCH_LOCATION, .saying.prefetched = agent.handle};
    const struct rows none = {0};
    uint64_t start, end;
    hsa_status_t status;

    if (!ctx || !pages_of(ptr, size, &start, &end) || !num_dep_signals != !dep_signals)
        return runtime_refusal(ctx);
    if (!topology_agent(agent))
        return HSA_STATUS_ERROR_INVALID_AGENT;
    /* nothing is said yet, but can be afterwards: what fails changes nothing */
    status = svm_say(start, end, &(struct wish){0});
    if (!status)
        status = job_start(&none, num_dep_signals, dep_signals, completion_signal, true);
    return status ? status : svm_say(start, end, &wish);
}
