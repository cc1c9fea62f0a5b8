/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes that programs give to ranges of memory: hsa_amd_svm_...().
 *
 * Ranges with attributes are in a tree. They consist of whole pages and do not overlap; all other memory has the
 * defaults. A range is split where a new one begins or ends inside of it, so that each request applies to whole ranges.
 * The lock of the records (address_map.h) protects all of it.
 */
#include <stdlib.h>

#include <memclient/hsa/hsa/hsa_ext_amd.h>

#include "base/align.h"
#include "base/tree.h"
#include "hsa/address_map.h"
#include "hsa/job.h"
#include "hsa/runtime.h"
#include "hsa/topology.h"

#define GRANULARITY_DEFAULT 9
#define GRANULARITY_MAX     18

#define SVM_VALUES (HSA_AMD_SVM_ATTRIB_GPU_EXEC + 1)

struct svm_attributes {
    uint64_t values[SVM_VALUES];  /* by the attribute's number; agents as handles */
    uint64_t no_access, in_place; /* sets of agents */
};

static const struct svm_attributes svm_defaults = {
    .values[HSA_AMD_SVM_ATTRIB_MIGRATION_GRANULARITY] = GRANULARITY_DEFAULT,
};

struct svm_range {
    RB_ENTRY(svm_range) entry;
    uint64_t start;
    uint64_t end;
    struct svm_attributes attributes;
};

static int svm_compare(const struct svm_range *a, const struct svm_range *b)
{
    return a->start < b->start ? -1 : a->start > b->start;
}

RB_HEAD(svm_ranges, svm_range);
TREE_GENERATE(svm_ranges, svm_range, entry, svm_compare)

static struct svm_ranges svm_ranges = RB_INITIALIZER(&svm_ranges);

/* ---- the tree, with the lock ------------------------------------------------------------------------------------- */

/* The first range that ends after the address. */
static struct svm_range *svm_first(uint64_t address)
{
    struct svm_range *found = NULL;

    for (struct svm_range *s = RB_ROOT(&svm_ranges); s;) {
        if (s->end > address) {
            found = s;
            s = RB_LEFT(s, entry);
        } else {
            s = RB_RIGHT(s, entry);
        }
    }
    return found;
}

static struct svm_range *svm_insert(uint64_t start, uint64_t end, const struct svm_attributes *attributes)
{
    struct svm_range *new = malloc(sizeof(*new));

    if (!new)
        return NULL;
    *new = (struct svm_range){.start = start, .end = end, .attributes = *attributes};
    RB_INSERT(svm_ranges, &svm_ranges, new);
    return new;
}

/* Makes sure that no range has the address inside of it. */
static bool svm_split(uint64_t address)
{
    struct svm_range *s = svm_first(address);
    uint64_t end;

    if (!s || s->start >= address)
        return true;
    end = s->end;
    s->end = address;
    if (svm_insert(address, end, &s->attributes))
        return true;
    s->end = end;
    return false;
}

/* Makes [start, end) consist of whole ranges. If it fails, the attributes of all addresses stay the same. */
static bool svm_split_range(uint64_t start, uint64_t end)
{
    if (!svm_split(start) || !svm_split(end))
        return false;
    while (start < end) {
        struct svm_range *s = svm_first(start);
        uint64_t gap_end = s && s->start < end ? s->start : end;

        if (start < gap_end && !svm_insert(start, gap_end, &svm_defaults))
            return false;
        start = s && s->start < end ? s->end : end;
    }
    return true;
}

void svm_forget(void)
{
    struct svm_range *s;

    while ((s = RB_ROOT(&svm_ranges))) {
        RB_REMOVE(svm_ranges, &svm_ranges, s);
        free(s);
    }
}

/* ---- setting ----------------------------------------------------------------------------------------------------- */

struct svm_request {
    uint32_t given;    /* mask of the values */
    uint64_t accesses; /* set of agents */
    struct svm_attributes attributes;
};

static hsa_status_t svm_request_access(struct svm_request *request, uint64_t attribute, uint64_t value)
{
    const struct agent *agent = topology_agent((hsa_agent_t){value});

    if (!agent)
        return HSA_STATUS_ERROR_INVALID_AGENT;
    if (request->accesses & agent_bit(agent))
        return HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS;
    request->accesses |= agent_bit(agent);
    if (attribute == HSA_AMD_SVM_ATTRIB_AGENT_NO_ACCESS)
        request->attributes.no_access |= agent_bit(agent);
    if (attribute == HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE_IN_PLACE)
        request->attributes.in_place |= agent_bit(agent);
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t svm_request_attribute(struct svm_request *request, uint64_t attribute, uint64_t value)
{
    switch (attribute) {
    case HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE:
    case HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE_IN_PLACE:
    case HSA_AMD_SVM_ATTRIB_AGENT_NO_ACCESS:
        return svm_request_access(request, attribute, value);
    case HSA_AMD_SVM_ATTRIB_READ_ONLY:
    case HSA_AMD_SVM_ATTRIB_HIVE_LOCAL:
    case HSA_AMD_SVM_ATTRIB_READ_MOSTLY:
    case HSA_AMD_SVM_ATTRIB_GPU_EXEC:
        value = value != 0;
        break;
    case HSA_AMD_SVM_ATTRIB_GLOBAL_FLAG:
        if (value != HSA_AMD_SVM_GLOBAL_FLAG_FINE_GRAINED && value != HSA_AMD_SVM_GLOBAL_FLAG_COARSE_GRAINED)
            return HSA_STATUS_ERROR_INVALID_ARGUMENT;
        break;
    case HSA_AMD_SVM_ATTRIB_MIGRATION_GRANULARITY:
        if (value > GRANULARITY_MAX)
            value = GRANULARITY_MAX;
        break;
    case HSA_AMD_SVM_ATTRIB_PREFERRED_LOCATION:
        if (value && !topology_agent((hsa_agent_t){value}))
            return HSA_STATUS_ERROR_INVALID_AGENT;
        break;
    default:
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    }
    if (request->given & 1U << attribute)
        return HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS;
    request->given |= 1U << attribute;
    request->attributes.values[attribute] = value;
    return HSA_STATUS_SUCCESS;
}

static void svm_apply(const struct svm_request *request, struct svm_attributes *attributes)
{
    for (unsigned i = 0; i < SVM_VALUES; i++)
        if (request->given & 1U << i)
            attributes->values[i] = request->attributes.values[i];
    attributes->no_access = (attributes->no_access & ~request->accesses) | request->attributes.no_access;
    attributes->in_place = (attributes->in_place & ~request->accesses) | request->attributes.in_place;
}

/* The pages of the range. False if the range is invalid. */
static bool svm_pages(const void *ptr, size_t size, uint64_t *start, uint64_t *end)
{
    uint64_t last;

    if (!ptr || !size || __builtin_add_overflow((uintptr_t)ptr, size - 1, &last) || last >= UINT64_MAX - page_size())
        return false;
    *start = (uintptr_t)ptr / page_size() * page_size();
    *end = (last / page_size() + 1) * page_size();
    return true;
}

static hsa_status_t svm_set(uint64_t start, uint64_t end, const struct svm_request *request)
{
    bool is_whole;

    address_map_lock();
    is_whole = svm_split_range(start, end);
    for (struct svm_range *s = svm_first(start); is_whole && s && s->start < end;
         s = RB_NEXT(svm_ranges, &svm_ranges, s))
        svm_apply(request, &s->attributes);
    address_map_unlock();
    return is_whole ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_OUT_OF_RESOURCES;
}

hsa_status_t hsa_amd_svm_attributes_set(void *ptr, size_t size, hsa_amd_svm_attribute_pair_t *attribute_list,
                                        size_t attribute_count)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    struct svm_request request = {0};
    uint64_t start, end;

    if (!ctx || !svm_pages(ptr, size, &start, &end) || !attribute_list || !attribute_count)
        return runtime_refusal(ctx);
    for (size_t i = 0; i < attribute_count; i++) {
        hsa_status_t status = svm_request_attribute(&request, attribute_list[i].attribute, attribute_list[i].value);

        if (status)
            return status;
    }
    return svm_set(start, end, &request);
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

/* Values that differ become: no model, the smaller granularity, no agent, or false. */
static void svm_join(struct svm_attributes *all, const struct svm_attributes *other)
{
    for (unsigned i = 0; i < SVM_VALUES; i++) {
        if (all->values[i] == other->values[i])
            continue;
        if (i == HSA_AMD_SVM_ATTRIB_GLOBAL_FLAG)
            all->values[i] = HSA_AMD_SVM_GLOBAL_FLAG_INDETERMINATE;
        else if (i != HSA_AMD_SVM_ATTRIB_MIGRATION_GRANULARITY)
            all->values[i] = 0;
        else if (other->values[i] < all->values[i])
            all->values[i] = other->values[i];
    }
    all->no_access |= other->no_access;
    all->in_place &= other->in_place;
}

/* The attributes that hold for all of the range. Needs the lock. */
static struct svm_attributes svm_attributes_of(uint64_t start, uint64_t end)
{
    struct svm_range *s = svm_first(start);
    struct svm_attributes all = s && s->start <= start ? s->attributes : svm_defaults;

    for (; s && s->start < end; s = RB_NEXT(svm_ranges, &svm_ranges, s)) {
        if (s->start > start)
            svm_join(&all, &svm_defaults);
        svm_join(&all, &s->attributes);
        start = s->end;
    }
    if (start < end)
        svm_join(&all, &svm_defaults);
    return all;
}

static hsa_status_t svm_get_access(const struct svm_attributes *attributes, hsa_amd_svm_attribute_pair_t *pair)
{
    const struct agent *agent = topology_agent((hsa_agent_t){pair->value});

    if (!agent)
        return HSA_STATUS_ERROR_INVALID_AGENT;
    if (attributes->no_access & agent_bit(agent))
        pair->attribute = HSA_AMD_SVM_ATTRIB_AGENT_NO_ACCESS;
    else if (attributes->in_place & agent_bit(agent))
        pair->attribute = HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE_IN_PLACE;
    else
        pair->attribute = HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE;
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t svm_get(const struct svm_attributes *attributes, hsa_amd_svm_attribute_pair_t *pair)
{
    if (pair->attribute == HSA_AMD_SVM_ATTRIB_ACCESS_QUERY)
        return svm_get_access(attributes, pair);
    if (pair->attribute >= SVM_VALUES)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    pair->value = attributes->values[pair->attribute];
    return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_svm_attributes_get(void *ptr, size_t size, hsa_amd_svm_attribute_pair_t *attribute_list,
                                        size_t attribute_count)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    struct svm_attributes attributes;
    uint64_t start, end;

    if (!ctx || !svm_pages(ptr, size, &start, &end) || !attribute_list || !attribute_count)
        return runtime_refusal(ctx);
    /* a trial first: a request that fails changes nothing */
    for (size_t i = 0; i < attribute_count; i++) {
        hsa_amd_svm_attribute_pair_t pair = attribute_list[i];
        hsa_status_t status = svm_get(&svm_defaults, &pair);

        if (status)
            return status;
    }
    address_map_lock_read();
    attributes = svm_attributes_of(start, end);
    address_map_unlock();
    for (size_t i = 0; i < attribute_count; i++)
        (void)svm_get(&attributes, &attribute_list[i]);
    return HSA_STATUS_SUCCESS;
}

/* ---- prefetching ------------------------------------------------------------------------------------------------- */

hsa_status_t hsa_amd_svm_prefetch_async(void *ptr, size_t size, hsa_agent_t agent, uint32_t num_dep_signals,
                                        const hsa_signal_t *dep_signals, hsa_signal_t completion_signal)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    struct svm_request request = {
        .given = 1U << HSA_AMD_SVM_ATTRIB_PREFETCH_LOCATION,
        .attributes.values[HSA_AMD_SVM_ATTRIB_PREFETCH_LOCATION] = agent.handle,
    };
    const struct rows none = {0};
    uint64_t start, end;
    hsa_status_t status;

    if (!ctx || !svm_pages(ptr, size, &start, &end) || !num_dep_signals != !dep_signals)
        return runtime_refusal(ctx);
    if (!topology_agent(agent))
        return HSA_STATUS_ERROR_INVALID_AGENT;
    /* makes the ranges, so that setting cannot fail afterwards: a request that fails changes nothing */
    status = svm_set(start, end, &(struct svm_request){0});
    if (!status)
        status = job_start(&none, num_dep_signals, dep_signals, completion_signal, true);
    return status ? status : svm_set(start, end, &request);
}
